# SPDX-License-Identifier: Apache-2.0
"""A problem file in KernelBench form: found, imported, its model built."""

import importlib.machinery
import importlib.util
import itertools
import linecache
import os
import random
import sys

import torch

from .arguments import Structure, leaves, parameter_names
from .failure import ProblemFailure, is_out_of_memory, summary, user_line
from .returned import named

_numbers = itertools.count()


def seed_torch(seed):
    """What `torch.manual_seed` does, for the host and its GPUs. That also notes where it was called
    for devices that are not there, which takes a third of the run of a small model."""
    torch.default_generator.manual_seed(seed)
    if torch.backends.cuda.is_built():
        torch.cuda.manual_seed_all(seed)


def seed_everything(seed):
    """Seeds torch (all devices), `random`, and NumPy where it is loaded."""
    seed_torch(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)


class ProblemFile:
    """The user's module. Importing runs the user's code, once per object."""

    def __init__(self, path):
        self.path = os.path.abspath(path)
        self.source = _read_source(self.path)
        self._module = self._import()
        # The model that was built last, with the names of its arguments, and how
        # these are nested, once inputs were drawn for it.
        self._model, self._names, self._structure = None, [], None
        self._require("Model", "NO_MODEL", "a class `Model` (a torch.nn.Module)")
        self._require("get_inputs", "NO_GET_INPUTS", "a function `get_inputs` returning a list")

    def build_model(self, seed, device, randomize_identity=False):
        """Returns the model on `device`, in the mode that its constructor leaves: training, where
        it says nothing.

        It is built on the host, so that one seed gives the same parameters on
        every device.
        """
        make_arguments = getattr(self._module, "get_init_inputs", list)
        seed_everything(seed)
        arguments = self.call(make_arguments)
        if not isinstance(arguments, (list, tuple)):
            raise ProblemFailure(
                "INPUTS_WRONG_TYPE",
                f"get_init_inputs returned {type(arguments).__name__}; "
                "return a list of the constructor's arguments",
            )
        seed_everything(seed)
        model = self.call(self._module.Model, *arguments)
        if not isinstance(model, torch.nn.Module):
            raise ProblemFailure("NO_MODEL", "`Model` is not a torch.nn.Module; derive it from one")
        if randomize_identity:
            _randomize_identity_parameters(model, seed)
        self._model, self._names, self._structure = model, parameter_names(model), None
        return self.call(lambda: map_tensors(model, lambda tensor: tensor.to(device)))

    def draw(self):
        """Calls `get_inputs` and returns the leaves of the list it made; no seed is set here.

        Where there are nested arguments, the model built before takes leaves from then on.
        """
        inputs = self.call(self._module.get_inputs)
        if not isinstance(inputs, (list, tuple)):
            raise ProblemFailure(
                "INPUTS_WRONG_TYPE",
                f"get_inputs returned {type(inputs).__name__}; "
                "return a list of the arguments of `Model.forward`",
            )
        if self._model is not None:
            self._arrange(inputs)
        return leaves(list(inputs))

    def _arrange(self, inputs):
        structure = Structure(inputs, self._names)
        if self._structure is None:
            self._structure = structure
            if not structure.is_flat:
                structure.flatten(self._model)
        elif structure != self._structure:
            raise ProblemFailure(
                "INPUTS_WRONG_TYPE",
                "get_inputs nests its values otherwise than before; give them one structure",
            )

    @property
    def module(self):
        """What the file became."""
        return self._module

    def describe_arguments(self, values):
        """The arguments as mtmc.v1.Structure; `values` has what stands for each leaf."""
        if self._structure is None:
            return list(values)
        return [named(each, values) for each in self._structure.described]

    def call(self, function, *arguments):
        """Runs the user's code; whatever it raises becomes a ProblemFailure."""
        try:
            return function(*arguments)
        except ProblemFailure:
            raise
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit too: the process must survive it.
            raise self.failure_of(error) from error

    def failure_of(self, error):
        """The ProblemFailure for an exception that came out of the user's code."""
        line = user_line(error, self.path)
        if is_out_of_memory(error):
            return ProblemFailure(
                "INPUTS_TOO_LARGE",
                "the problem does not fit into memory; make its sizes smaller",
                line,
                error,
            )
        where = f"line {line} " if line else ""
        advice = "fix the file so that it runs in plain PyTorch"
        if isinstance(error, ModuleNotFoundError):
            advice = f"install it for {sys.executable}, or do without it"
        return ProblemFailure(
            "MODEL_RAISED",
            f"{where}raised {summary(error)}; {advice}",
            line,
            error,
        )

    def _import(self):
        # A fresh name for each load: a pickled or compiled class of an earlier
        # problem must never be found again.
        name = f"mtmc_problem_{next(_numbers)}"
        # Files of the artifact cache are named by digest, without `.py`.
        loader = importlib.machinery.SourceFileLoader(name, self.path)
        spec = importlib.util.spec_from_file_location(name, self.path, loader=loader)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        linecache.checkcache(self.path)
        code = compile(self.source, self.path, "exec")
        self.call(exec, code, module.__dict__)
        return module

    def _require(self, name, reason, what):
        if not callable(getattr(self._module, name, None)):
            raise ProblemFailure(reason, f"the file has no {what}; add one")


def map_tensors(model, function):
    """Applies `function` to parameters, buffers and plain tensor attributes, in place.

    `Module.to` leaves plain attributes behind, which the trace treats as
    constants; they must follow the parameters. Returns the model.
    """
    model._apply(function)
    for module in model.modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, torch.Tensor):
                setattr(module, name, function(value))
    return model


def _read_source(path):
    try:
        with open(path, "rb") as file:
            source = file.read().decode("utf-8")
    except OSError as error:
        raise ProblemFailure(
            "FILE_NOT_FOUND", f"cannot read {path} ({error.strerror}); give the path of a file"
        ) from error
    except UnicodeDecodeError as error:
        raise ProblemFailure(
            "NOT_PYTHON", "the file is not UTF-8 text; give a Python file"
        ) from error
    try:
        compile(source, path, "exec")
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", 0) or 0
        raise ProblemFailure(
            "NOT_PYTHON",
            f"the file is not Python ({summary(error)}); fix line {line}",
            line,
            error,
        ) from error
    return source


@torch.no_grad()
def _randomize_identity_parameters(model, seed):
    """Biases of 0 become uniform in -0.5 to 0.5, scales of 1 in 0.5 to 1.5."""
    generator = torch.Generator().manual_seed(seed ^ 0x5EED)
    for parameter in model.parameters():
        if not parameter.is_floating_point() or parameter.numel() == 0:
            continue
        first = parameter.flatten()[0].item()
        if first in (0.0, 1.0) and bool((parameter == first).all()):
            noise = torch.rand(parameter.shape, generator=generator) - 0.5
            parameter.add_(noise.to(parameter.dtype))
