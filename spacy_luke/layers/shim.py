"""Thinc shims of torch modules: optimizer steps, learning rates, serialisation."""

import copy
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from pydantic import Field
from thinc.api import Optimizer, get_torch_default_device
from thinc.shims import PyTorchShim, Shim
from thinc.util import torch2xp

from ..errors import ConfigError
from ..report import LOGGER
from ..validation import Factor, check_settings
from .adam import Change, applies, step
from .arrays import to_torch
from .forking import make_forks_safe


@dataclass
class LearnRates:
    """Learning rates and weight decay of a module's parameters, relative to the config's optimizer.

    learn_rate_factor: multiplies the learning rate of every parameter. An encoder with 0 is frozen:
        it is not trained, and needs no backward pass.
    new, new_learn_rate_factor: name prefixes of parameters that are not from the checkpoint, and an
        additional factor for these.
    layer_decay: the factor of layer i of n is ``layer_decay ** (n - i)``, that of embeddings
        ``layer_decay ** (n + 1)``; 1.0 means no decay.
    decay_everything: also apply weight decay (L2) to biases and LayerNorm.
    max_rate: the maximum learning rate of the optimizer, before all factors; None: no limit.
        Optimizers without moments (SGD) use rates of another magnitude, and have no limit.
    owner: the encoder's name, for the warning about the limit; empty: no warning.
    """

    learn_rate_factor: Factor = 1.0
    new_learn_rate_factor: Factor = 1.0
    new: tuple[str, ...] = ()
    layer_decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    n_layers: int = 0
    decay_everything: bool = False
    max_rate: float | None = None
    owner: str = ""

    def __post_init__(self) -> None:
        check_settings("model", LearnRates, vars(self))

    def scale(self, name: str) -> float:
        """The factor of a parameter's learning rate."""
        if name.startswith(self.new) and self.new:
            return self.learn_rate_factor * self.new_learn_rate_factor
        depth = self.n_layers + 1
        for part, following in zip(name.split("."), name.split(".")[1:]):
            if part == "layers" and following.isdigit():
                depth = self.n_layers - int(following) - 1
        return self.learn_rate_factor * self.layer_decay**depth

    def limit_factor(self, optimizer: Optimizer) -> float:
        """The factor that reduces the optimizer's learning rate to the limit; 1 if it is lower."""
        if self.max_rate is None or not optimizer.b2 or optimizer.learn_rate <= self.max_rate:
            return 1.0
        if self.owner:
            LOGGER.warning(
                "The learning rate %g is too high for the encoder %s, which would learn nothing: "
                "%g is used, also for the heads of luke_* components on it (not for the layers of "
                "spaCy's own). Set max_learn_rate of the encoder to a number, or to null for no "
                "limit. This warning is logged once.",
                optimizer.learn_rate,
                self.owner,
                self.max_rate,
            )
            self.owner = ""
        return self.max_rate / optimizer.learn_rate

    def decays(self, name: str, parameter: torch.Tensor) -> bool:
        """Whether weight decay applies to a parameter."""
        return self.decay_everything or (parameter.ndim > 1 and not name.endswith(".bias"))


@dataclass
class Format:
    """The functions that save and load a module. They must be module-level, to be picklable."""

    save: Callable[[Any], bytes]
    load: Callable[[bytes], torch.nn.Module]


_told: int | None = None
"""The last optimizer that was warned of, by its ``id``: it cannot be referenced weakly."""


class LukeShim(PyTorchShim):
    """A shim whose module may be absent until it is initialised or loaded.

    prepared: whether the node's settings have been applied to the present module.
    n_steps: optimizer steps that were taken, but for those with the rate 0.

    It has no gradient scaler: Thinc's unscales all gradients in every backward pass, which is wrong
    with ``accumulate_gradient``. Mixed precision is bf16 autocast, which needs no scaler.
    """

    def __init__(self, module: torch.nn.Module | None, format: Format):
        super().__init__(module)
        self.format = format
        self.rates = LearnRates()
        self.prepared = False
        self.n_steps = 0
        self._n_at_zero = 0
        self._device: torch.device | None = None

    @property
    def module(self) -> torch.nn.Module | None:
        return self._model

    def set(self, module: torch.nn.Module) -> None:
        """Replace the module. The shim gets a new id, because optimizers store moments by this id,
        and those of another module would be wrong."""
        make_forks_safe()
        # New parameters may have another type, of torch.set_default_dtype.
        self._model = module.to(self._device or get_torch_default_device(), torch.float32)
        self.prepared = False
        self._renew_id()

    def to_device(self, device_type: str, device_id: int) -> None:
        """Move the module. If there is none yet, :meth:`set` will put it on that device."""
        gpu = device_type == "gpu"
        self._device = torch.device("cuda", device_id) if gpu else torch.device(device_type)
        if self._model is not None:
            with self._changing():
                self._model.to(self._device)

    def _renew_id(self) -> None:
        with Shim.global_id_lock:
            Shim.global_id += 1
            self.id = Shim.global_id

    def finish_update(self, optimizer: Optimizer) -> None:
        """Take an optimizer step on all parameters with gradients, and remove these. Without any,
        as in a frozen module, nothing changes, and what was computed by the weights stays valid."""
        if self._model is None:
            return
        if not hasattr(optimizer, "L2"):
            self._model.zero_grad()  # or the next step would be taken with them, too
            raise ConfigError(
                "The optimizer has no weight decay (L2), so it is none of Thinc's. nlp.rehearse "
                "passes a function in its place; call rehearse of the component instead: "
                "nlp.get_pipe(NAME).rehearse(examples, sgd=optimizer)."
            )
        changes = list(self._changes(optimizer))
        if changes:
            self._check_rate(optimizer)
            with self._changing():
                self._step(optimizer, changes)
            self.n_steps += bool(optimizer.learn_rate)

    def _check_rate(self, optimizer: Optimizer) -> None:
        """Warn, once for an optimizer, if it takes two steps in a row with the rate 0. The first
        step of a warm-up has it, too."""
        global _told
        self._n_at_zero = 0 if optimizer.learn_rate else self._n_at_zero + 1
        if self._n_at_zero == 2 and _told != id(optimizer):
            _told = id(optimizer)
            LOGGER.warning(
                "The learning rate is 0 in two updates in a row: nothing is learned. Its schedule "
                "has ended, or does not move: nlp.update does not call optimizer.step_schedules(), "
                "as spacy train does after every update. Call it, or set optimizer.learn_rate. "
                "This warning is logged once."
            )

    def _step(self, optimizer: Optimizer, changes: Sequence[Change]) -> None:
        if applies(optimizer, changes):
            step(optimizer, changes)
        else:
            for change in changes:
                _change(optimizer, change)
        for change in changes:
            change.parameter.grad = None

    def _changes(self, optimizer: Optimizer) -> Iterator[Change]:
        assert self._model is not None
        limit_factor = self.rates.limit_factor(optimizer)
        for name, parameter in self._model.named_parameters():
            if parameter.grad is not None and parameter.requires_grad:
                rate = limit_factor * self.rates.scale(name)
                decay = optimizer.L2 if self.rates.decays(name, parameter) else 0.0
                yield Change((self.id, name), parameter, rate, decay)

    @contextmanager
    def use_params(self, params: dict) -> Iterator[None]:
        """In this context parameters have the values of ``params``: the averages of an optimizer
        (``use_averages``), with the keys that :meth:`finish_update` used."""
        named = self._model.named_parameters() if self._model is not None else ()
        replaced = [(p, params[self.id, name]) for name, p in named if (self.id, name) in params]
        old_values = [parameter.data.clone() for parameter, _ in replaced]
        if replaced:
            with self._changing():
                for parameter, value in replaced:
                    parameter.data.copy_(to_torch(value))
        try:
            yield
        finally:
            if replaced:
                with self._changing():
                    for (parameter, _), value in zip(replaced, old_values):
                        parameter.data.copy_(value)

    def _changing(self) -> AbstractContextManager:
        """The module's context for changes of its weights, if it has one (a module that several
        threads use). Thinc changes weights through NumPy or CuPy, which torch does not notice."""
        return getattr(self._model, "changing", nullcontext)()

    def __getstate__(self) -> dict[str, bytes]:
        """Pickled here: the pickler of ``multiprocessing`` would move tensors to memory that the
        processes share, and a training in one would change the weights of all."""
        return {"state": pickle.dumps(self.__dict__)}

    def __setstate__(self, state: dict[str, bytes]) -> None:
        self._restore(pickle.loads(state["state"]))

    def __deepcopy__(self, memo: dict[int, Any]) -> "LukeShim":
        result = memo[id(self)] = type(self).__new__(type(self))
        result._restore(copy.deepcopy(self.__dict__, memo))
        return result

    def _restore(self, state: dict[str, Any]) -> None:
        """Become a copy. Tensors that were made in ``torch.inference_mode`` could not be trained
        later."""
        self.__dict__.update(state)
        if self._model is not None:
            make_forks_safe()
            _without_inference_tensors(self._model)

    def copy(self) -> "LukeShim":
        """A copy with a new id, by which optimizers store moments."""
        result = copy.deepcopy(self)
        result._renew_id()
        return result

    def to_bytes(self) -> bytes:
        return b"" if self._model is None else self.format.save(self._model)

    @torch.inference_mode(False)  # its tensors could not be trained later
    def from_bytes(self, bytes_data: bytes) -> "LukeShim":
        if bytes_data:
            self.set(self.format.load(bytes_data))
        return self


@torch.inference_mode(False)
def _without_inference_tensors(model: torch.nn.Module) -> None:
    """Replace inference tensors by normal ones; what was tied stays tied."""
    replaced: dict[int, torch.Tensor] = {}

    def normal(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in replaced:
            copied = tensor.detach().clone()
            if isinstance(tensor, torch.nn.Parameter):
                copied = torch.nn.Parameter(copied, tensor.requires_grad)
            replaced[id(tensor)] = copied
        return replaced[id(tensor)]

    for module in model.modules():
        tables: Any = (module._parameters, module._buffers)
        for table in tables:
            for name, tensor in table.items():
                if tensor is not None and tensor.is_inference():
                    table[name] = normal(tensor)


def _change(optimizer: Optimizer, change: Change) -> None:
    """One parameter, by the optimizer itself."""
    weights: Any = torch2xp(change.parameter.data)
    gradient: Any = torch2xp(change.parameter.grad)  # type: ignore[arg-type]
    with _decay(optimizer, change.decay):
        updated, _ = optimizer(change.key, weights, gradient, lr_scale=change.rate)
    # Thinc's optimizers update the parameter's own memory. Assigning their result would wrap it
    # again in every step, in an endless chain of wrappers.
    if updated is not weights and not _same_memory(updated, weights):
        change.parameter.data.copy_(to_torch(updated))


@contextmanager
def _decay(optimizer: Optimizer, rate: float) -> Iterator[None]:
    """Set the optimizer's weight decay for one parameter, and restore it also after an error."""
    old_rate = optimizer.L2
    optimizer.L2 = rate
    try:
        yield
    finally:
        optimizer.L2 = old_rate


def _same_memory(one: Any, other: Any) -> bool:
    def address(array: Any) -> int:
        return array.data.ptr if hasattr(array.data, "ptr") else array.ctypes.data

    return address(one) == address(other)
