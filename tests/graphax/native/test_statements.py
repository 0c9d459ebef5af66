import numpy as np
import pytest

from graphax.native.statements import StatementBuilder


@pytest.fixture
def builder():
    return StatementBuilder()


def _one(builder, value):
    return builder.constant(value, np.float64)


def test_same_statements_are_one(builder):
    x, y = builder.input(0, 0, np.float64), builder.input(1, 0, np.float64)
    assert builder.apply("mul", x, y) == builder.apply("mul", y, x)
    assert builder.apply("sub", x, y) != builder.apply("sub", y, x)


def test_zeros_of_both_signs_are_two_constants(builder):
    assert _one(builder, 0.0) != _one(builder, -0.0)
    assert _one(builder, np.nan) == _one(builder, np.nan)


@pytest.mark.parametrize(
    ("operation", "value", "after"), [("mul", 1.0, True), ("div", 1.0, True), ("sub", 0.0, True), ("add", -0.0, True)]
)
def test_neutral_elements_vanish(builder, operation, value, after):
    x = builder.input(0, 0, np.float64)
    assert builder.apply(operation, x, _one(builder, value)) == x


@pytest.mark.parametrize(("operation", "value"), [("add", 0.0), ("sub", -0.0), ("mul", 0.0)])
def test_what_changes_signed_zeros_or_nan_stays(builder, operation, value):
    x = builder.input(0, 0, np.float64)
    assert builder.apply(operation, x, _one(builder, value)) != x
    assert builder.statements[-1].operation == operation


def test_negatives_move_out_of_products_and_into_sums(builder):
    x, y = builder.input(0, 0, np.float64), builder.input(1, 0, np.float64)
    minus = builder.apply("neg", y)
    assert builder.apply("add", x, minus) == builder.apply("sub", x, y)
    assert builder.apply("sub", x, minus) == builder.apply("add", x, y)
    assert builder.apply("mul", builder.apply("neg", x), minus) == builder.apply("mul", x, y)
    assert builder.apply("mul", x, _one(builder, -1.0)) == builder.apply("neg", x)


@pytest.mark.parametrize(("value", "exact"), [(2.0, True), (-0.25, True), (3.0, False), (2.0**-1074, False)])
def test_division_by_a_constant_is_a_product_only_if_exact(builder, value, exact):
    builder.apply("div", builder.input(0, 0, np.float64), _one(builder, value))
    assert (builder.statements[-1].operation != "div") == exact


def test_powers_by_squaring(builder):
    x = builder.input(0, 0, np.float64)
    before = len(builder.statements)
    builder.power(x, 16)
    # The constant one and four products.
    assert len(builder.statements) - before == 5
    inverse = builder.power(x, -1)
    assert builder.statements[builder.power(x, -2)].operands == (inverse, inverse)


def test_folding_rounds_as_the_type_does(builder):
    third = builder.apply("div", builder.constant(1, np.float32), builder.constant(3, np.float32))
    assert builder.value(third) == np.float32(1) / np.float32(3)
    assert np.isinf(builder.value(builder.apply("div", _one(builder, 1.0), _one(builder, 0.0))))
