# SPDX-License-Identifier: Apache-2.0
class _MtmcLibraryCall:
    """A call of PyTorch's library in the form that its schema asks for.

    A program names an operator and its arguments. Which overload takes them, which of them
    are lists or element types, and which go by keyword is found at the first call by the
    rules under which the program was measured: the unnamed overload comes first, then the
    others by name, and one that writes into a given tensor never."""

    def __init__(self, op, overload="", precision="default", is_channels_last=False):
        self._op = op
        self._overload = overload
        self._precision = precision
        # The only ones that cuDNN searches algorithms for.
        self._is_searched = "conv" in op
        # How results come: [N, C, ...] as [N, ..., C], which is no copy of what has channels last.
        self._is_channels_last = is_channels_last
        self._form = None
        # What takes the arguments as they are; None where the form changes them.
        self._plain = None

    def __call__(self, device, *arguments, **keywords):
        """All tensors of the result, dense, as a list; None stands for what is no tensor."""
        _mtmc_settings.prepare(self._precision, self._is_searched)
        if self._plain is not None:
            return _mtmc_dense(self._plain(*arguments), self._is_channels_last)
        if self._form is None:
            self._form = self._resolve(arguments, keywords)
        function, positions, names = self._form
        if not names and positions == [(at, _mtmc_same) for at in range(len(arguments))]:
            self._plain = function
        result = function(
            *[convert(_mtmc_given(at, device, arguments, keywords)) for at, convert in positions],
            **{name: convert(_mtmc_given(at, device, arguments, keywords))
               for name, at, convert in names})
        return _mtmc_dense(result, self._is_channels_last)

    def _resolve(self, arguments, keywords):
        packet = getattr(_mtmc_torch.ops.aten, self._op.removeprefix("aten::"))
        named = [self._overload] if self._overload else sorted(
            packet.overloads(), key=lambda name: "" if name == "default" else name)
        for name in named:
            function = getattr(packet, name)
            form = self._match(function._schema, arguments, keywords)
            if form is not None:
                return function, *form
        raise TypeError(f"no form of {self._op} takes these arguments")

    def _match(self, schema, arguments, keywords):
        """(by position, by name), each with where its value is and what it becomes."""
        positions, names, used = [], [], 0
        for index, argument in enumerate(schema.arguments):
            if argument.is_out:
                return None
            # A call that names its overload may give all by position, as a traced graph does.
            has_position = not argument.kwarg_only or self._overload
            at, value = None, None
            if argument.name in keywords:
                at, value = argument.name, keywords[argument.name]
            elif index < len(arguments) and has_position:
                at, value = index, arguments[index]
            used += at is not None
            if value is None and "Device" in str(argument.type):
                # Where the tensors are. A traced graph gives all by position, and no device.
                names.append((argument.name, _MTMC_DEVICE, _mtmc_same))
                continue
            if at is None:
                if argument.has_default_value():
                    continue
                return None
            convert = _mtmc_conversion(value, argument.type, argument.N)
            if convert is None:
                return None
            if at == len(positions) and not argument.kwarg_only:
                positions.append((at, convert))
            else:
                names.append((argument.name, at, convert))
        return (positions, names) if used == len(arguments) + len(keywords) else None


# Stands for the device of the program's tensors, where a call asks for one.
_MTMC_DEVICE = object()


def _mtmc_given(at, device, arguments, keywords):
    if at is _MTMC_DEVICE:
        return device
    return arguments[at] if isinstance(at, int) else keywords[at]


def _mtmc_same(value):
    return value


def _mtmc_conversion(value, kind, repeat):
    """What makes `value` an argument of schema type `kind`; None when nothing does."""
    name = kind.kind()
    if name == "OptionalType":
        return _mtmc_same if value is None else _mtmc_conversion(
            value, kind.getElementType(), repeat)
    if name == "ListType":
        # `int[2]` takes a single number for as many equal ones.
        items = value if isinstance(value, list) else [value] * (repeat or 0)
        inner = [_mtmc_conversion(item, kind.getElementType(), None) for item in items]
        if None in inner or not (isinstance(value, list) or repeat):
            return None
        return _mtmc_same if isinstance(value, list) else lambda one: [one] * repeat
    if name == "IntType" and isinstance(value, str):
        return _mtmc_data_type if _mtmc_data_type(value) else None
    takes = {
        "TensorType": _mtmc_torch.Tensor, "IntType": int, "SymIntType": int, "StringType": str,
        "FloatType": (int, float), "NumberType": (bool, int, float), "BoolType": bool}.get(name, ())
    is_bool = isinstance(value, bool)
    fits = isinstance(value, takes) and (not is_bool or name in ("BoolType", "NumberType"))
    return _mtmc_same if fits else None


def _mtmc_data_type(text):
    """The element type of a program's `f16`, `float16` or `torch.float16`; None for other words."""
    short = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16",
             "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u8": "uint8"}
    name = text.removeprefix("torch.")
    found = getattr(_mtmc_torch, short.get(name, name), None)
    return found if isinstance(found, _mtmc_torch.dtype) else None


def _mtmc_dense(result, is_channels_last):
    if isinstance(result, _mtmc_torch.Tensor):
        return [(result.movedim(1, -1) if is_channels_last else result).contiguous()]
    if not isinstance(result, (tuple, list)):
        return [None]
    return [tensor for item in result for tensor in _mtmc_dense(item, is_channels_last)]


class _MtmcSettings:
    """What library calls run under while the program does.

    The program was timed with these, and the library chooses its algorithms by them: TF32 as
    each call says (by default what PyTorch does unasked: in convolutions, not in matrix
    products), cuDNN's search for the fastest algorithm, and no cast by autocast. The
    caller's own settings come back afterwards. torch.use_deterministic_algorithms stays the
    caller's: it is a promise, not a choice of speed.

    All of this is the host's work before a first kernel starts: what is as it should be is
    read once a run, and not set."""

    _TF32 = {"default": (False, True), "tf32": (True, True), "ieee": (False, False)}

    def __init__(self):
        self._forget()

    def _forget(self):
        # The precision that is in force, where that is known, and what the caller's was.
        self._known = self._precision = None
        # Whether the caller lets cuDNN search, once a call asked for it.
        self._searched = None
        self._autocast = ()

    def __enter__(self):
        self._forget()
        self._is_deterministic = _mtmc_is_deterministic()
        if self._is_deterministic:
            _mtmc_torch.backends.cudnn.deterministic = False
        if _mtmc_has_autocast():
            self._autocast = [_mtmc_torch.autocast(kind, enabled=False) for kind in ("cpu", "cuda")]
            for autocast in self._autocast:
                autocast.__enter__()

    def __exit__(self, *error):
        for autocast in reversed(self._autocast):
            autocast.__exit__(*error)
        if self._is_deterministic:
            _mtmc_torch.backends.cudnn.deterministic = True
        if self._searched is False:
            _mtmc_torch.backends.cudnn.benchmark = False
        if self._precision:
            allowed, names = self._precision
            if allowed:
                _mtmc_allow_tf32(allowed)
            _mtmc_name_precision(names)

    def prepare(self, precision, is_searched):
        """For the next call: the precision of its products, and whether cuDNN searches for it."""
        if is_searched and self._searched is None:
            cudnn = _mtmc_torch.backends.cudnn
            self._searched = cudnn.benchmark
            if not self._searched:
                cudnn.benchmark = True
        if self._known != precision:
            self._set_precision(precision)
            self._known = precision

    def _set_precision(self, name):
        allowed = _mtmc_allowed_tf32()
        if allowed == self._TF32[name]:
            return
        self._precision = self._precision or (allowed, _mtmc_precision_names())
        if allowed:
            _mtmc_allow_tf32(self._TF32[name])
        matmul, cudnn = ("tf32" if allows else "ieee" for allows in self._TF32[name])
        _mtmc_name_precision((matmul, cudnn, cudnn))


_mtmc_is_deterministic = _mtmc_direct(
    "_get_cudnn_deterministic", lambda: _mtmc_torch.backends.cudnn.deterministic)
_mtmc_has_autocast = _mtmc_direct(
    "_is_any_autocast_enabled",
    lambda: _mtmc_torch.is_autocast_enabled("cuda") or _mtmc_torch.is_autocast_enabled("cpu"))
_mtmc_allows_tf32_in_products = _mtmc_direct(
    "_get_cublas_allow_tf32", lambda: _mtmc_torch.backends.cuda.matmul.allow_tf32)
_mtmc_allows_tf32_in_cudnn = _mtmc_direct(
    "_get_cudnn_allow_tf32", lambda: _mtmc_torch.backends.cudnn.allow_tf32)

# PyTorch has two interfaces for TF32. Setting the older one sets both, but leaves no trace of
# "none", which inherits; reading the older one fails once a caller has used the newer.


def _mtmc_allowed_tf32():
    """In matrix products and in cuDNN; None when only the newer interface can say it."""
    try:
        return (_mtmc_allows_tf32_in_products(), _mtmc_allows_tf32_in_cudnn())
    except RuntimeError:
        return None


def _mtmc_allow_tf32(allowed):
    backends = _mtmc_torch.backends
    backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32 = allowed


def _mtmc_precision_names():
    backends = _mtmc_torch.backends
    return (backends.cuda.matmul.fp32_precision, backends.cudnn.conv.fp32_precision,
            backends.cudnn.rnn.fp32_precision)


def _mtmc_name_precision(names):
    backends = _mtmc_torch.backends
    (backends.cuda.matmul.fp32_precision, backends.cudnn.conv.fp32_precision,
     backends.cudnn.rnn.fp32_precision) = names


_mtmc_settings = _MtmcSettings()
