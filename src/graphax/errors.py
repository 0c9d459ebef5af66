"""All errors that graphax raises about its input."""


class GraphaxError(Exception):
    """Base class of all errors raised by graphax itself."""


class OrderError(GraphaxError, ValueError):
    """An elimination order does not fit the graph."""


class FingerprintError(OrderError):
    """The order was made for another graph."""


class RuleError(GraphaxError, ValueError):
    """A structure rule returned something impossible."""


class JacobianMismatch(GraphaxError, AssertionError):
    """`check_jacobian` found a difference."""


class NativeError(GraphaxError, ValueError):
    """The native backend does not support a function.

    ``equation`` is the unsupported equation, if one caused the error.
    """

    equation: str | None = None

    def within(self, equation: str, source: str) -> "NativeError":
        """The same error, naming the equation. An error that already names an inner equation stays as it is."""
        if self.equation is not None:
            return self
        place = f" ({source})" if source else ""
        named = type(self)(f"the native backend does not support {equation}{place}: {self}")
        named.equation = equation
        return named


class LongCodeError(NativeError):
    """The code of a kernel for the function would be too long, or take too long to compile."""
