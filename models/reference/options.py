"""Options as config.pbtxt has them: text, or Python values that say the same."""


def flag(value) -> bool:
    return {"true": True, "false": False}[str(value).lower()]


def choice(name: str, value: str, legal: tuple) -> str:
    if value not in legal:
        raise ValueError(f"option {name} is '{value}'; it must be one of {', '.join(legal)}")
    return value
