"""What public functions say when they are given something that is no tensor; see autograd/errors.py."""

import pickle

import numpy as np
import pytest

import autograd as ag

X = ag.ones(2, 3)
CALLS = {
    "int": (lambda: ag.softmax(3, 1), r"^\[softmax\] expected a tensor; got int$"),
    "None": (lambda: ag.reshape(None, (3,)), r"^\[reshape\] expected a tensor; got NoneType$"),
    "inside a list": (lambda: ag.stack([X, 2.0]), r"^\[stack\] expected a tensor; got float$"),
    "as an index": (lambda: ag.index_select(X, 0, (1, 0)), r"^\[index_select\] .* got tuple"),
    "array": (lambda: ag.cumsum(np.ones(3), 0), r"^\[cumsum\] .* got ndarray"),
    "one for many": (lambda: ag.cat(5), r"^\[cat\] expected a tensor; got int \('int' object is not iterable\)$"),
    "unary": (lambda: ag.exp(3), r"^\[exp\] expected a Tensor; got int$"),
    "an option": (lambda: ag.softmax(X, "a"), r"^\[softmax\] 'str' object cannot be"),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_error_names_the_function_and_what_came(name):
    call, words = CALLS[name]
    with pytest.raises(TypeError, match=words):
        call()


def test_other_errors_stay_what_they_are():
    class Odd:
        @property
        def dtype(self):
            return {}.missing

    with pytest.raises(AttributeError, match="'dict' object has no attribute 'missing'"):
        ag.softmax(Odd(), 1)
    with pytest.raises(TypeError, match=r"^topk\(\) missing 1 required"):
        ag.topk(X)


def test_methods_do_without_the_words_and_every_function_pickles():
    assert ag.Tensor.softmax is ag.softmax.__wrapped__ and ag.softmax.__doc__ == ag.Tensor.softmax.__doc__
    for name, function in ag.op.PUBLIC.items():
        assert pickle.loads(pickle.dumps(function)) is function, name
