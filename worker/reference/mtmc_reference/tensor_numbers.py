# SPDX-License-Identifier: Apache-2.0
"""Numbers that `forward` takes out of tensors (`scale = x.max().item()`), put back.

A program has tensors only, so such a number becomes the tensor of no dimensions that it
came from: Python's arithmetic with it becomes operators on that tensor, in the type that
Python computes in, and an operator that took the number becomes its form for tensors.
"""

import operator

import torch
from torch.utils import _pytree

from . import tensor_type
from .exported import line, untraceable

_TAKES = frozenset({torch.ops.aten.item.default, torch.ops.aten._local_scalar_dense.default})
_aten = torch.ops.aten
# Python's functions of two numbers, as operators on a tensor and either.
_BINARY = {
    operator.add: (_aten.add.Tensor, _aten.add.Scalar),
    operator.sub: (_aten.sub.Tensor, _aten.sub.Scalar),
    operator.mul: (_aten.mul.Tensor, _aten.mul.Scalar),
    operator.truediv: (_aten.div.Tensor, _aten.div.Scalar),
    operator.floordiv: (_aten.floor_divide.default, _aten.floor_divide.Scalar),
    operator.mod: (_aten.remainder.Tensor, _aten.remainder.Scalar),
    torch.sym_max: (_aten.maximum.default, _aten.clamp_min.default),
    torch.sym_min: (_aten.minimum.default, _aten.clamp_max.default),
}
# The same where the tensor is the second one.
_REVERSED = {
    operator.add: _aten.add.Scalar,
    operator.mul: _aten.mul.Scalar,
    operator.sub: _aten.rsub.Scalar,
    torch.sym_max: _aten.clamp_min.default,
    torch.sym_min: _aten.clamp_max.default,
}
# Make tensors of one number, which is the argument at this position.
_FILLS = {
    _aten.full.default: 1,
    _aten.full_like.default: 1,
    _aten.new_full.default: 2,
    _aten.scalar_tensor.default: 0,
}
_UNARY = {operator.neg: _aten.neg.default, operator.abs: _aten.abs.default}
_ADVICE = "keep it as a tensor: leave out .item(), or use torch.where"


def put_back(graph, path):
    """Rewrites the numbers in the fx `graph` of the user's file `path`, in place.

    Raises ProblemFailure UNTRACEABLE where an operator takes numbers only.
    """
    _Rewriter(path).rewrite(graph)


class _Rewriter:
    def __init__(self, path):
        self._path = path
        # Node that took or made a number, to the node of its tensor.
        self._tensors = {}

    def rewrite(self, graph):
        for node in list(graph.nodes):
            if node.op != "call_function":
                continue
            if node.target in _TAKES:
                self._tensors[node] = self._tensors.get(node.args[0], node.args[0])
            elif any(source in self._tensors for source in node.all_input_nodes):
                self._take_tensors(graph, node)

    def _take_tensors(self, graph, node):
        value = node.meta.get("val")
        if isinstance(value, (torch.SymInt, torch.SymFloat)):
            return self._compute(graph, node)
        # Checks of ranges have no value, and nothing depends on them. A result whose
        # size is such a number is none that a program can have.
        is_operator = value is not None and isinstance(node.target, torch._ops.OpOverload)
        if not is_operator or not all(tensor_type.is_fixed(t) for t in _pytree.tree_leaves(value)):
            return None
        args = torch.fx.node.map_arg(node.args, self._tensor_of)
        kwargs = torch.fx.node.map_arg(node.kwargs, self._tensor_of)
        filled = args[_FILLS[node.target]] if node.target in _FILLS else None
        if isinstance(filled, torch.fx.Node):
            with graph.inserting_before(node):
                filling = self._widened(graph, node, filled, value.dtype)
            forms, args, kwargs = [_aten.expand.default], (filling, list(value.shape)), {}
        else:
            forms = self._forms(node.target)
        for form in forms:
            if self._gives(form, args, kwargs, value):
                node.target, node.args, node.kwargs = form, args, kwargs
                return None
        name = node.target._schema.name
        raise untraceable(
            line(node, self._path), f"{name} takes a number that comes from a tensor", _ADVICE
        )

    def _compute(self, graph, node):
        """A number made of numbers, as a tensor of the type that Python computes in."""
        is_real = isinstance(node.meta["val"], torch.SymFloat)
        dtype = torch.float64 if is_real else torch.int64
        sources = [self._tensor_of(value) for value in node.args]
        are_tensors = [isinstance(value, torch.fx.Node) for value in sources]
        target = None
        if node.target in _BINARY and len(sources) == 2:
            on_two, on_first = _BINARY[node.target]
            target = on_two if all(are_tensors) else on_first
            if not are_tensors[0]:
                target, sources = _REVERSED.get(node.target), sources[::-1]
        elif node.target in _UNARY:
            target = _UNARY[node.target]
        elif node.target is torch.sym_float:
            target = _aten._to_copy.default
        if target is None:
            name = getattr(node.target, "__name__", str(node.target))
            raise untraceable(
                line(node, self._path), f"{name} of a number that comes from a tensor", _ADVICE
            )
        with graph.inserting_before(node):
            wide = [self._widened(graph, node, value, dtype) for value in sources]
            made = wide[0] if target is _aten._to_copy.default else None
            made = made or self._call(graph, node, target, tuple(wide))
        self._tensors[node] = made

    def _widened(self, graph, node, value, dtype):
        if not isinstance(value, torch.fx.Node) or value.meta["val"].dtype == dtype:
            return value
        return self._call(graph, node, _aten._to_copy.default, (value,), {"dtype": dtype})

    def _call(self, graph, node, target, args, kwargs=None):
        made = graph.call_function(target, args, kwargs or {})
        made.meta.update({key: value for key, value in node.meta.items() if key != "val"})
        made.meta["val"] = self._run(target, args, kwargs or {})
        return made

    def _tensor_of(self, value):
        return self._tensors.get(value, value) if isinstance(value, torch.fx.Node) else value

    @staticmethod
    def _forms(target):
        """The operator itself, then its other forms with arguments of the same names."""
        names = [argument.name for argument in target._schema.arguments]
        packet = target.overloadpacket
        others = [getattr(packet, name) for name in packet.overloads()]
        alike = [o for o in others if [a.name for a in o._schema.arguments] == names]
        return [target] + [other for other in alike if other is not target]

    def _gives(self, form, args, kwargs, value):
        """Whether `form` takes the arguments and gives what a number in their place gave."""
        wanted = form._schema.arguments
        given = [*zip(wanted, args), *((a, kwargs[a.name]) for a in wanted if a.name in kwargs)]
        for argument, item in given:
            if isinstance(item, torch.fx.Node) and "Tensor" not in str(argument.type):
                return False
        try:
            result = self._run(form, args, kwargs)
        except Exception:
            return False
        have, want = _pytree.tree_leaves(result), _pytree.tree_leaves(value)
        return [(t.dtype, t.shape) for t in have] == [(t.dtype, t.shape) for t in want]

    @staticmethod
    def _run(target, args, kwargs):
        """The result for the shapes and types of the arguments."""
        fake = torch.fx.node.map_arg((args, kwargs), lambda node: node.meta["val"])
        modes = [v.fake_mode for v in _pytree.tree_leaves(fake) if hasattr(v, "fake_mode")]
        with modes[0]:
            return target(*fake[0], **fake[1])
