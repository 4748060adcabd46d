import copy
import math
import pickle
from typing import Literal, TypedDict

import pytest

from spacy_luke.errors import ConfigError
from spacy_luke.validation import ComponentSettings, Count, Probability, check_settings


class Schema(TypedDict):
    labels: list[str]
    threshold: Probability
    order: Literal["both", "text"]
    size: Count | None
    nested: bool
    tables: dict[str, dict[str, float]]


def make(**configured) -> ComponentSettings:
    return ComponentSettings("pipe", Schema, {"threshold": 0.5, "order": "both", **configured})


@pytest.mark.parametrize(
    "name,value,message",
    [
        ("threshold", 7, "pipe.threshold is 7. Input should be less than or equal to 1"),
        ("threshold", math.nan, "pipe.threshold is nan. Input should be a finite number"),
        ("threshold", "0.5", "pipe.threshold is '0.5'. Input should be a valid number"),
        ("order", "any", "pipe.order is 'any'. Input should be 'both' or 'text'"),
        ("size", 0, "pipe.size is 0. Input should be greater than or equal to 1"),
        ("nested", 1, "pipe.nested is 1. Input should be a valid boolean"),
        ("labels", ["a", 3], "pipe.labels is ['a', 3]. Input should be a valid string."),
        ("treshold", 0.5, "pipe has no setting 'treshold'; it has labels, nested, order"),
    ],
)
@pytest.mark.parametrize("how", ["item", "update", "or", "default", "made"])
def test_a_value_that_cannot_work_is_refused_however_it_is_set(how, name, value, message):
    settings = make()
    before = dict(settings)
    with pytest.raises(ConfigError) as err:
        if how == "item":
            settings[name] = value
        elif how == "update":
            settings.update({"nested": True, name: value})
        elif how == "or":
            settings |= {name: value}
        elif how == "made":
            make(**{name: value})
        else:
            del settings["threshold"], settings["order"]
            before = dict(settings)
            settings.setdefault(name, value)
    assert message in str(err.value)
    assert settings == before


def test_a_setting_that_is_there_keeps_its_value_by_setdefault():
    assert make().setdefault("threshold", 0.1) == 0.5


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_validate_too(copied):
    settings = make()
    settings["threshold"] = 0.2
    copied = copied(settings)
    assert copied == settings
    with pytest.raises(ConfigError):
        copied["threshold"] = 2.0
    assert settings["threshold"] == 0.2


def test_nothing_in_a_value_changes_in_place_so_copies_share_it():
    settings = make()
    settings["tables"] = {"slopes": {"A": 1.0}}
    with pytest.raises(ConfigError, match="cannot be changed in place"):
        settings["tables"]["slopes"]["A"] = 2.0
    assert copy.deepcopy(settings)["tables"] is settings["tables"]
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_functions_name_the_argument():
    def build(size: Count) -> None: ...

    check_settings("build", build, {"size": 1})
    with pytest.raises(ConfigError, match="build.size is 0"):
        check_settings("build", build, {"size": 0})
