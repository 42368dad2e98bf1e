"""The one check of a number against its limits, so that every error of the kind reads the same."""


def within(what, number, most, least=0):
    """ValueError that names the number and both limits, unless it lies between them."""
    if not least <= number <= most:
        raise ValueError("{} {}: {} to {} expected".format(what, number, least, most))
