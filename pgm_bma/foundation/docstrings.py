"""Docstring parts that several classes share, written once."""


def fill(**parts):
    """Class decorator: every ``{name}`` of the docstring becomes the part of that name."""

    def decorate(cls):
        for name, text in parts.items():
            if cls.__doc__:  # none under python -OO
                cls.__doc__ = cls.__doc__.replace("{" + name + "}", text)
        return cls

    return decorate
