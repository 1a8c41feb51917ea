"""save and load: nested data with tensors in a safetensors file. Data only: nothing in a file can run code.

The file's metadata holds the structure as JSON and a SHA-256 over it and every tensor. The tensors stand under names
made of their paths, so a saved state_dict is, to any other library, a safetensors file with the usual keys.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import sys
from typing import Any

import numpy as np
import safetensors

from . import dtypes
from .create import place
from .tensor import Tensor

_VERSION = "1"
_KEYS = ("autograd_version", "autograd_structure", "autograd_sha256")
_DTYPES = {"F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I32": "i4", "U8": "u1", "BOOL": "?"}
_NAMES = {np.dtype(kind): name for name, kind in _DTYPES.items()} | {dtypes.bfloat16.numpy: "BF16"}
# Types of other libraries' files that the engine lacks, read without loss into the next wider one it has.
_WIDENED = {"I8": ("i1", "i4"), "I16": ("i2", "i4"), "U16": ("u2", "i4"), "U32": ("u4", "i8")}
_CONVERT = (
    "It holds pickle, which can run code. Where PyTorch is, convert it once: "
    'safetensors.torch.save_file(torch.load(path, weights_only=True), "weights.safetensors")'
)


# -- saving ---------------------------------------------------------------------------------------------


def save(obj: Any, path: Any) -> None:
    """Write dicts, lists and tuples of tensors, numbers, strings, bools and None, at any depth, to a safetensors file.

    Tensors are saved by value (not their history, requires_grad or device); those that are one (the same tensor, or
    the same memory, shape and strides) stay one. The file is written beside `path`, synced and renamed: whatever goes
    wrong, what was at `path` stays as it was. path: a name, or a binary file that is open for writing.
    TypeError, before anything is written, for what cannot be saved, with its place, e.g. obj["opt"]["fn"]; OSError, of the
    class and number that it came with, for a file that cannot be written.
    """
    writer = _Writer()
    structure = json.dumps(writer.encode(obj, "obj", ()), allow_nan=False, separators=(",", ":"))
    digest = _digest(structure, writer.arrays)
    metadata = dict(zip(_KEYS, (_VERSION, structure, digest), strict=True))
    if hasattr(path, "write"):
        _write(path, writer.arrays, metadata)
    else:
        _write_whole(os.path.realpath(os.fsdecode(path)), writer.arrays, metadata)


class _Writer:
    """Turns nested data into what JSON can say, and collects its tensors by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._names: dict[tuple, str] = {}
        self._inside: set[int] = set()

    def encode(self, value: Any, where: str, keys: tuple) -> Any:
        """The JSON form: scalars as they are, all else as an object with one entry that names its kind."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else {"float": repr(float(value))}
        if isinstance(value, Tensor):
            return {"tensor": self._name(value, keys)}
        if not isinstance(value, dict | list | tuple):
            hint = " Save its state_dict()." if hasattr(value, "state_dict") else ""
            hint = " ag.from_numpy makes it a tensor." if isinstance(value, np.ndarray) else hint
            raise TypeError(
                f"[save] {where} is a {type(value).__name__}, which cannot be saved; dicts, lists, tuples, tensors, numbers, "
                f"strings, bools and None can.{hint}"
            )
        return self._encode_container(value, where, keys)

    def _encode_container(self, value: Any, where: str, keys: tuple) -> Any:
        if id(value) in self._inside:
            raise TypeError(f"[save] {where} contains itself")
        if len(self._inside) > 200:
            raise TypeError(f"[save] {where[:60]}… is nested more than 200 deep")
        self._inside.add(id(value))
        if isinstance(value, dict):
            rows = [[_checked_key(k, where), self.encode(v, f"{where}[{k!r}]", (*keys, str(k)))] for k, v in value.items()]
            result = {"dict": rows}
        else:
            items = [self.encode(v, f"{where}[{i}]", (*keys, str(i))) for i, v in enumerate(value)]
            result = {"list" if isinstance(value, list) else "tuple": items}
        self._inside.discard(id(value))
        return result

    def _name(self, t: Tensor, keys: tuple) -> str:
        """The name under which the tensor's values are saved; one for all that share memory, shape and strides."""
        data = t.array
        if isinstance(data, np.ndarray):
            memory: tuple = (data.__array_interface__["data"][0], data.shape, data.strides, data.dtype.str)
        else:
            memory = (id(data.storage), data.offset, data.shape, data.strides, str(data.dtype))
        identity = memory if data.size else (id(t),)  # empty arrays may share an address by chance
        if identity not in self._names:
            name = ".".join(keys) or "tensor"
            while name in self.arrays or name == "__metadata__":
                name += "_"
            self._names[identity] = name
            self.arrays[name] = t._host().astype(data.dtype, order="C", copy=True)
        return self._names[identity]


def _checked_key(key: Any, where: str) -> Any:
    key = key.item() if isinstance(key, np.generic) else key
    if key is not None and not isinstance(key, str | int | bool) and not (isinstance(key, float) and math.isfinite(key)):
        raise TypeError(f"[save] {where} has the key {key!r}; keys are strings, numbers, bools and None")
    return key


def _digest(structure: str, arrays: dict[str, np.ndarray]) -> str:
    """SHA-256 over the structure and every tensor's name, dtype, shape and bytes."""
    total = hashlib.sha256(structure.encode())
    for name in sorted(arrays):
        a = arrays[name]
        total.update(json.dumps([name, a.dtype.str, list(a.shape)]).encode())
        total.update(a.reshape(-1).view(np.uint8).data if a.size else b"")
    return total.hexdigest()


def _write(file: Any, arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Write a safetensors file: the size of a JSON header, the header, the arrays' bytes. The library's own writer for
    NumPy knows no bfloat16."""
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0]))  # so that each stands aligned
    header: dict[str, Any] = {"__metadata__": metadata}
    place = 0
    for name, a in ordered:
        header[name] = {"dtype": _NAMES[a.dtype], "shape": list(a.shape), "data_offsets": [place, place + a.nbytes]}
        place += a.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for _, a in ordered:
        little = a if sys.byteorder == "little" else a.byteswap()
        file.write(little.reshape(-1).view(np.uint8).data if a.size else b"")


def _write_whole(path: str, arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Write a new file beside `path` and rename it into place, or leave no trace."""
    folder, base = os.path.split(path)
    fresh = os.path.join(folder, f".{base}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        fresh = path  # a device or a pipe, which nothing may take the place of
    try:
        try:
            with open(fresh, "wb") as file:
                _write(file, arrays, metadata)
                if fresh != path:
                    file.flush()
                    os.fsync(file.fileno())
        except OSError as error:
            made = type(error)(f"[save] {path} could not be written: {error}")
            made.errno = error.errno
            raise made from error
        if fresh == path:
            return
        if os.path.exists(path):
            os.chmod(fresh, os.stat(path).st_mode & 0o7777)
        os.replace(fresh, path)
    finally:
        if fresh != path and os.path.exists(fresh):
            os.remove(fresh)
    if os.name == "posix":  # a rename lasts once its directory is on the disk
        entry = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(entry)
        finally:
            os.close(entry)


# -- loading --------------------------------------------------------------------------------------------


def load(path: Any, device: Any = None, *, map_location: Any = None, weights_only: bool = True) -> Any:
    """What save() wrote, its tensors on `device` (the default device); from anyone else's safetensors file, a dict.

    path: a name, or a binary file that is open for reading, which is read to its end. map_location: PyTorch's name of device.
    weights_only must be True: files hold data only, whoever wrote them.
    int8, int16, uint16 and uint32 are read as the next wider integers: no value changes.
    FileNotFoundError when there is no file; ValueError that says what is wrong with one that is cut off, changed or of
    another kind.
    """
    if not weights_only:
        raise ValueError("[load] weights_only must be True: a file holds tensors, numbers and text, and no objects")
    if device is not None and map_location is not None:
        raise ValueError(f"[load] give device or map_location, not both; got {device} and {map_location}")
    device = map_location if device is None else device
    if hasattr(path, "read"):
        raw, where = path.read(), str(getattr(path, "name", "the file"))
    else:
        where = os.fsdecode(path)
        with open(where, "rb") as file:
            raw = file.read()
    metadata = _header(raw, where).get("__metadata__") or {}
    try:
        entries = safetensors.deserialize(raw)
    except Exception as error:  # the library raises several classes of its own
        raise ValueError(f"[load] {where} is damaged: {error}") from None
    arrays = {name: _array(entry, name, where) for name, entry in entries}
    if not any(key in metadata for key in _KEYS):
        return {name: place(a, device) for name, a in arrays.items()}
    if any(key not in metadata for key in _KEYS):
        raise ValueError(f"[load] {where} is damaged: its metadata lacks {[k for k in _KEYS if k not in metadata]}")
    version, structure, digest = (metadata[key] for key in _KEYS)
    if digest != _digest(structure, arrays):
        raise ValueError(f"[load] {where} is damaged: its checksum does not match its content")
    if version != _VERSION:
        raise ValueError(f"[load] {where} has format version {version}; this release reads {_VERSION}")
    made = {name: place(a, device) for name, a in arrays.items()}
    try:
        return _decode(json.loads(structure), made)
    except (ValueError, TypeError, KeyError, RecursionError) as error:  # made up, with a checksum that fits
        raise ValueError(f"[load] {where} is damaged: its structure is not what save() writes ({error})") from None


def _header(raw: bytes, where: str) -> dict:
    """The file's JSON header, with an error that says what the file is instead."""
    if not raw:
        raise ValueError(f"[load] {where} is empty")
    size = int.from_bytes(raw[:8], "little")
    if len(raw) < 10 or raw[8:9] != b"{":  # only now: a header's size may begin as a pickle does
        if raw[:4] == b"PK\x03\x04" or (raw[:1] == b"\x80" and raw[1:2] in b"\x02\x03\x04\x05"):
            raise ValueError(f"[load] {where} is a PyTorch file (zip or pickle), not safetensors. {_CONVERT}")
        raise ValueError(f"[load] {where} is not a safetensors file ({len(raw)} bytes)")
    if 8 + size > len(raw):
        raise ValueError(f"[load] {where} is cut off: its header has {size} bytes, the file {len(raw)}")
    try:
        header = json.loads(raw[8 : 8 + size])
        wanted = 8 + size + max((e["data_offsets"][1] for k, e in header.items() if k != "__metadata__"), default=0)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        raise ValueError(f"[load] {where} is damaged: its header is not that of a safetensors file") from None
    if wanted != len(raw):
        state = "is cut off" if wanted > len(raw) else "has something after its end"
        raise ValueError(f"[load] {where} {state}: it should have {wanted} bytes and has {len(raw)}")
    return header


def _array(entry: dict, name: str, where: str) -> np.ndarray:
    """One tensor's values in memory of its own."""
    kind, shape, raw = entry["dtype"], entry["shape"], entry["data"]
    if kind == "BF16":
        values = np.frombuffer(raw, "<u2").astype(np.uint16).view(dtypes.bfloat16.numpy)
    elif kind in _WIDENED:
        stored, wide = _WIDENED[kind]
        values = np.frombuffer(raw, "<" + stored).astype(wide)
    elif kind in _DTYPES:
        values = np.frombuffer(raw, "<" + _DTYPES[kind] if kind != "BOOL" else "?").copy()
    else:
        known = ", ".join((*_DTYPES, "BF16", *_WIDENED))
        raise ValueError(f"[load] {where}: tensor {name!r} has dtype {kind}; there are {known}")
    try:
        return values.reshape(shape)
    except ValueError as error:  # more dimensions than NumPy has, or sizes beyond its integers beside a 0
        raise ValueError(f"[load] {where} is damaged: tensor {name!r}: {error}") from None


def _decode(node: Any, made: dict[str, Tensor]) -> Any:
    """Undo _Writer.encode."""
    if not isinstance(node, dict):
        return node
    ((kind, value),) = node.items()
    if kind == "tensor":
        return made[value]
    if kind == "float":
        return float(value)
    if kind == "dict":
        return {k: _decode(v, made) for k, v in value}
    if kind not in ("list", "tuple"):
        raise ValueError(f"there is no kind {kind[:20]!r}")
    items = [_decode(v, made) for v in value]
    return items if kind == "list" else tuple(items)
