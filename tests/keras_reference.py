"""Run the programs of keras_cases.py on Keras, and write or compare the golden file. Run by hand, where Keras is:

    KERAS_BACKEND=torch python tests/keras_reference.py          # compare what is there
    KERAS_BACKEND=torch python tests/keras_reference.py --write  # write it anew

The file that is there was made by Keras 3.15.1 on PyTorch 2.13.0, in float64. One rule is changed for it: on
PyTorch, Keras' means and quotients of float64 are computed in float32, as its promotion of float64 with float32 is
float32; here it is float64.
"""

import json
import sys
from pathlib import Path

import keras_cases
import numpy as np

GOLDEN = Path(__file__).parent / "golden"


def keep_float64():
    """See above."""
    from keras.src import backend
    from keras.src.backend.common import dtypes

    promoted = dtypes.result_type

    def result_type(*kinds):
        return "float64" if any(str(kind).endswith("float64") for kind in kinds) else promoted(*kinds)

    dtypes.result_type = backend.result_type = result_type


def main():
    import keras

    keep_float64()
    keras.config.set_floatx("float64")
    found = {}
    for group in keras_cases.GROUPS:
        keras.backend.clear_session()
        found |= {f"{group.__name__}/{k}": np.asarray(v, np.float64) for k, v in group(keras).items()}
    calls = keras_cases.calls(keras)
    if "--write" in sys.argv:
        np.savez_compressed(GOLDEN / "keras3_training.npz", **found)
        (GOLDEN / "keras3_calls.json").write_text(json.dumps(calls) + "\n")
        print(f"wrote {len(found)} arrays by Keras {keras.__version__}")
        return
    with np.load(GOLDEN / "keras3_training.npz") as golden:
        assert set(golden.files) == set(found), set(golden.files) ^ set(found)
        worst = max((float(np.abs(golden[k] - found[k]).max(initial=0)), k) for k in found)
    assert json.loads((GOLDEN / "keras3_calls.json").read_text()) == calls
    print(f"{len(found)} arrays agree with Keras {keras.__version__}; largest difference {worst}")


if __name__ == "__main__":
    main()
