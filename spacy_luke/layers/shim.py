"""The border between Thinc and a torch module of ours."""

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from pydantic import Field
from thinc.api import Optimizer, get_torch_default_device
from thinc.shims import PyTorchShim, Shim
from thinc.util import torch2xp

from ..report import LOGGER
from ..validation import Factor, check_settings
from .arrays import to_torch
from .forking import make_forks_safe


@dataclass
class LearnRates:
    """How a module's parameters are updated, on top of the config's optimizer.

    learn_rate_factor: multiplies the learning rate of every parameter.
    new, new_learn_rate_factor: names (prefixes) of freshly drawn parameters, and their factor.
    layer_decay: layer i of n learns at ``layer_decay ** (n - i)`` of the rate, embeddings at
        ``layer_decay ** (n + 1)``; 1.0 switches it off.
    decay_everything: also apply weight decay (L2) to biases and LayerNorm.
    most: the maximum learning rate, before all factors; None: no limit. Optimizers without moments
        (SGD) have other rates, and no limit.
    owner: the encoder, for a message when the limit acts; empty: no message.
    """

    learn_rate_factor: Factor = 1.0
    new_learn_rate_factor: Factor = 1.0
    new: tuple[str, ...] = ()
    layer_decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    n_layers: int = 0
    decay_everything: bool = False
    most: float | None = None
    owner: str = ""

    def __post_init__(self) -> None:
        check_settings("model", LearnRates, vars(self))

    def scale(self, name: str) -> float:
        if name.startswith(self.new) and self.new:
            return self.learn_rate_factor * self.new_learn_rate_factor
        depth = self.n_layers + 1
        for part, following in zip(name.split("."), name.split(".")[1:]):
            if part == "layers" and following.isdigit():
                depth = self.n_layers - int(following) - 1
        return self.learn_rate_factor * self.layer_decay**depth

    def within(self, optimizer: Optimizer) -> float:
        """What the optimizer's rate is to be multiplied by, so that it stays within the limit."""
        if self.most is None or not optimizer.b2 or optimizer.learn_rate <= self.most:
            return 1.0
        if self.owner:
            LOGGER.warning(
                "The learning rate %g is too high for the encoder %s, which would learn nothing: "
                "%g is used, for the layers on it too. Set max_learn_rate of the encoder to a "
                "number, or to null for no limit. This is said once.",
                optimizer.learn_rate,
                self.owner,
                self.most,
            )
            self.owner = ""
        return self.most / optimizer.learn_rate

    def decays(self, name: str, parameter: torch.Tensor) -> bool:
        return self.decay_everything or (parameter.ndim > 1 and not name.endswith(".bias"))


@dataclass
class Format:
    """How a module is written and read: two module-level functions (so that it pickles)."""

    save: Callable[[Any], bytes]
    load: Callable[[bytes], torch.nn.Module]


class LukeShim(PyTorchShim):
    """A shim whose module may be absent until it is initialised or loaded.

    prepared: the owner applied its settings to the present module.

    It has no gradient scaler: Thinc's unscales all gradients at every backward pass, which is
    wrong under ``accumulate_gradient``. Mixed precision here is bf16 autocast, which needs none.
    """

    def __init__(self, module: torch.nn.Module | None, format: Format):
        super().__init__(module)
        self.format = format
        self.rates = LearnRates()
        self.prepared = False
        self._device: torch.device | None = None

    @property
    def module(self) -> torch.nn.Module | None:
        return self._model

    def set(self, module: torch.nn.Module) -> None:
        """Take a module in. It gets a new identity, because optimizers keep their moments by
        that, and those of another module would not fit."""
        make_forks_safe()
        # float32, whatever torch.set_default_dtype made fresh parameters.
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
        """One optimizer step on every parameter that has a gradient; gradients become zero."""
        if self._model is None:
            return
        with self._changing():
            self._step(optimizer)

    def _step(self, optimizer: Optimizer) -> None:
        assert self._model is not None
        decay, within = optimizer.L2, self.rates.within(optimizer)
        for name, parameter in self._model.named_parameters():
            if parameter.grad is None or not parameter.requires_grad:
                continue
            weights: Any = torch2xp(parameter.data)
            with _decay(optimizer, decay if self.rates.decays(name, parameter) else 0.0):
                updated, _ = optimizer(
                    (self.id, name),
                    weights,
                    torch2xp(parameter.grad),  # type: ignore[arg-type]
                    lr_scale=within * self.rates.scale(name),
                )
            # Thinc's optimizers work in place, on the parameter's own memory. Wrapping the
            # result anew at every step would chain wrappers up without end.
            if updated is not weights and not _same_memory(updated, weights):
                parameter.data.copy_(to_torch(updated))
            parameter.grad = None

    @contextmanager
    def use_params(self, params: dict) -> Iterator[None]:
        """Within the block, parameters have the values that ``params`` has for them: the averages
        of an optimizer (``use_averages``), by the keys that :meth:`finish_update` gave it."""
        named = self._model.named_parameters() if self._model is not None else ()
        found = [(p, params[self.id, name]) for name, p in named if (self.id, name) in params]
        before = [parameter.data.clone() for parameter, _ in found]
        if found:
            with self._changing():
                for parameter, value in found:
                    parameter.data.copy_(to_torch(value))
        try:
            yield
        finally:
            if found:
                with self._changing():
                    for (parameter, _), value in zip(found, before):
                        parameter.data.copy_(value)

    def _changing(self) -> AbstractContextManager:
        """What a module that several threads may use does about a change of its weights. (Thinc
        writes through NumPy or CuPy, which torch does not notice.)"""
        return getattr(self._model, "changing", nullcontext)()

    def copy(self) -> "LukeShim":
        """A copy with an identity of its own: optimizers keep their moments by it."""
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


@contextmanager
def _decay(optimizer: Optimizer, rate: float) -> Iterator[None]:
    """Set the optimizer's weight decay for one parameter, and restore it also after an error."""
    before = optimizer.L2
    optimizer.L2 = rate
    try:
        yield
    finally:
        optimizer.L2 = before


def _same_memory(one: Any, other: Any) -> bool:
    def address(array: Any) -> int:
        return array.data.ptr if hasattr(array.data, "ptr") else array.ctypes.data

    return address(one) == address(other)
