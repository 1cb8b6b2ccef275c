# SPDX-License-Identifier: Apache-2.0
class _MtmcOperator:
    """The program as one operator of PyTorch: for torch.compile and torch.export, which cannot
    look into it, and where somebody may ask for gradients, which it refuses.

    It changes nothing: what the plan would make of its targets comes after its results. Equal
    programs are one operator, however often their files are imported."""

    def __init__(self, digest, program, plan, results):
        """`results` are (shape, element type)."""
        self._program = program
        self._plan = plan
        self._results = results
        self._untraced = None
        self._function = _mtmc_registered(
            f"program_{digest}", "(Tensor[] inputs, Tensor[] targets) -> Tensor[]",
            self._run, self._describe, _mtmc_refuse)

    def __call__(self, inputs, targets):
        """The results of the plan; the targets have been changed."""
        made = self._function(inputs, targets)
        for target, value in zip(targets, made[len(self._results):]):
            target.copy_(value.detach())
        return made[:len(self._results)]

    def run(self, inputs, targets):
        """The results of the plan without the operator, where nobody needs it."""
        # A compiler that gave the model up goes on with what it calls: it must not with a plan.
        if "_dynamo" not in _mtmc_torch.__dict__:
            return self._program.run(self._plan, inputs, targets)
        if self._untraced is None:
            self._untraced = _mtmc_torch.compiler.disable(self._program.run)
        return self._untraced(self._plan, inputs, targets)

    def _run(self, inputs, targets):
        targets = [target.clone() for target in targets]
        made = self._program.run(self._plan, inputs, targets) + targets
        # No two tensors of an operator may be the same memory.
        taken = {tensor.untyped_storage().data_ptr() for tensor in inputs}
        for at, tensor in enumerate(made):
            if tensor.untyped_storage().data_ptr() in taken:
                made[at] = tensor.clone()
            taken.add(made[at].untyped_storage().data_ptr())
        return made

    def _describe(self, inputs, targets):
        """Tensors without content, of the shapes and types that a run gives."""
        device = (inputs or targets)[0].device
        return [_mtmc_torch.empty(shape, dtype=data_type, device=device)
                for shape, data_type in self._results] + [
                    _mtmc_torch.empty_like(target) for target in targets]


def _mtmc_wants_gradients(inputs):
    return _mtmc_torch.is_grad_enabled() and any(tensor.requires_grad for tensor in inputs)


def _mtmc_registered(name, schema, run, describe, backward=None):
    """The operator of that name; `describe` stands for `run` where there are no values."""
    found = getattr(_mtmc_torch.ops.mtmc_export, name, None)
    if found is None:
        made = _mtmc_torch.library.custom_op(
            f"mtmc_export::{name}", run, mutates_args=(), schema=schema)
        made.register_fake(describe)
        if backward is not None:
            made.register_autograd(backward, setup_context=_mtmc_keep)
        found = getattr(_mtmc_torch.ops.mtmc_export, name)
    return found.default


def _mtmc_keep(ctx, inputs, output):
    del output
    ctx.num_inputs = len(inputs[0])
    # The tensors themselves may change, which would be the error that is told.
    ctx.forms = [(tensor.shape, tensor.dtype) for tensor in (*inputs[0], *inputs[1])]


def _mtmc_refuse(ctx, gradients):
    """A compiler asks for the way back long before anybody goes it, so that it has to be there."""
    gradient = next(each for each in gradients if each is not None)
    made = _mtmc_refusal(
        gradient, [gradient.new_empty(shape, dtype=data_type) for shape, data_type in ctx.forms])
    return made[:ctx.num_inputs], made[ctx.num_inputs:]


def _mtmc_raise(gradient, inputs):
    raise RuntimeError(
        "a file exported by mtmc has no backward pass; call it under torch.no_grad(), and take "
        "Model where gradients are needed")


_mtmc_refusal = _mtmc_registered(
    "refusal", "(Tensor gradient, Tensor[] inputs) -> Tensor[]", _mtmc_raise,
    lambda gradient, inputs: [_mtmc_torch.empty_like(tensor) for tensor in inputs])
