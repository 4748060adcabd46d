"""How figures are printed."""


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f}"
