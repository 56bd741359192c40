"""Tables become numbers column by column, alike in every later table."""

import pickle

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from powersketch import SketchedKernelRidge, TablePreparation
from powersketch.exceptions import InputError, InputTypeError, RangeWarning


def _table(rows: int = 200, seed: int = 0) -> pandas.DataFrame:
    rng = np.random.default_rng(seed)
    size = rng.standard_normal(rows)
    size[::7] = np.nan
    colour = rng.choice(["red", "green", "blue"], rows).astype(object)
    colour[::11] = None
    day = pandas.Timestamp("2024-02-27 10:00") + pandas.to_timedelta(np.arange(rows), "h")
    return pandas.DataFrame(
        {
            "size": size,
            "colour": colour,
            "day": day,
            "shop": [f"shop {k % 150}" for k in range(rows)],
            "new": rng.random(rows) < 0.5,
            "ticket": [f"ticket {k}" for k in range(rows)],
            "land": "DE",
            "amount": [f" {k % 9}.5 " for k in range(rows)],
        }
    )


def _column(table: pandas.DataFrame, name: str, **options: object) -> np.ndarray:
    """Return what becomes of a column, by name."""
    preparation = TablePreparation(**options).fit(table)
    return preparation.transform(table)[:, [*preparation.get_feature_names_out()].index(name)]


@parametrize_with_checks([TablePreparation()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_numbers_stay_and_gaps_become_the_median_and_a_column():
    table = _table()
    size = table["size"].to_numpy()
    expected = np.where(np.isnan(size), np.nanmedian(size), size)
    np.testing.assert_array_equal(_column(table, "size"), expected)
    np.testing.assert_array_equal(_column(table, "missingindicator_size"), np.isnan(size))


def test_categories_get_a_column_each_and_missing_ones_too():
    table = _table()
    for colour in ("red", "green", "blue"):
        np.testing.assert_array_equal(_column(table, f"colour_{colour}"), table.colour == colour)
    np.testing.assert_array_equal(_column(table, "colour_None"), table.colour.isna())


def test_many_categories_become_their_share_of_the_rows():
    table = _table()
    shares = table["shop"].map(table["shop"].value_counts() / len(table))
    np.testing.assert_allclose(_column(table, "shop_frequency"), shares, rtol=1e-15)
    fitted = TablePreparation().fit(table)
    other = table.assign(shop="elsewhere")
    at = [*fitted.get_feature_names_out()].index("shop_frequency")
    assert (fitted.transform(other)[:, at] == 0.0).all()


def test_many_categories_can_be_hashed():
    table = _table()
    preparation = TablePreparation(many_categories="hash").fit(table)
    names = [*preparation.get_feature_names_out()]
    hashed = preparation.transform(table)[:, names.index("shop_hash0") :][:, :64]
    assert (np.abs(hashed).sum(axis=1) == 1.0).all()
    again = preparation.transform(table[::-1])[::-1, names.index("shop_hash0") :][:, :64]
    np.testing.assert_array_equal(hashed, again)


def test_dates_become_days_and_the_parts_that_vary():
    table = _table()
    np.testing.assert_allclose(_column(table, "day_days"), np.arange(200) / 24, rtol=1e-12)
    np.testing.assert_array_equal(_column(table, "day_weekday"), table["day"].dt.day_of_week)
    np.testing.assert_array_equal(_column(table, "day_hour"), table["day"].dt.hour)
    names = TablePreparation().fit(table).get_feature_names_out()
    assert "day_year" not in names


def test_missing_dates_get_medians_and_a_column():
    table = _table()
    table.loc[::5, "day"] = pandas.NaT
    present = table["day"].dropna()
    months = _column(table, "day_month")
    assert (months[::5] == np.median(present.dt.month)).all()
    np.testing.assert_array_equal(_column(table, "missingindicator_day"), table["day"].isna())


def test_times_of_other_zones_are_the_same_moments():
    table = _table()
    abroad = table.assign(day=table["day"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"))
    np.testing.assert_array_equal(_column(abroad, "day_hour"), _column(table, "day_hour"))


@pytest.mark.parametrize("pattern", ["%Y-%m-%d %H:%M:%S", "%d.%m.%Y %H:%M", "%m/%d/%Y"])
def test_dates_in_words_are_found(pattern):
    table = _table()
    words = table.assign(day=table["day"].dt.strftime(pattern))
    read = pandas.to_datetime(words["day"], format=pattern)
    np.testing.assert_array_equal(_column(words, "day_weekday"), read.dt.day_of_week)


def test_a_day_that_may_be_a_month_is_no_date_unless_the_user_says_so():
    table = pandas.DataFrame({"day": ["01/02/2024", "03/04/2024", "05/06/2024"] * 4})
    assert TablePreparation().fit(table).recipe_ == ["day: 3 categories, a column for each"]
    with pytest.raises(InputError, match=r"in no way or in several.*dates=\{'day'"):
        TablePreparation(dates=["day"]).fit(table)
    months = _column(table, "day_month", dates={"day": "%d/%m/%Y"})
    np.testing.assert_array_equal(months[:3], [2, 4, 6])


def test_numbers_stored_as_text_are_numbers():
    amounts = _column(_table(), "amount")
    np.testing.assert_array_equal(amounts, np.arange(200) % 9 + 0.5)


def test_words_for_gaps_among_numbers_are_gaps():
    table = _table()
    table["amount"] = [*["?", "NA"], *table["amount"][2:]]
    np.testing.assert_array_equal(_column(table, "missingindicator_amount"), np.arange(200) < 2)


def test_the_recipe_has_a_line_for_every_column():
    assert TablePreparation().fit(_table()).recipe_ == [
        "size: a number; where it is missing (29 rows), the median, and a column says so",
        "colour: 3 categories, a column for each; missing counts as one",
        "day: a date: days since the first one, and those parts that vary",
        "shop: 150 categories, how often they occur",
        "new: a number",
        "ticket: another text in every row; left out",
        "land: 'DE' in every row; left out",
        "amount: a number stored as text",
    ]


def test_constants_with_gaps_say_where_the_gaps_are():
    table = pandas.DataFrame({"a": [1.0, None, 1.0], "b": ["x", "x", None], "c": [1, 2, 3]})
    prepared = TablePreparation().fit_transform(table)
    np.testing.assert_array_equal(prepared, [[1, 0, 0], [2, 1, 0], [3, 0, 1]])


def test_row_numbers_are_left_out():
    table = pandas.DataFrame({"Unnamed: 0": range(1, 31), "a": np.arange(30.0) ** 2})
    assert TablePreparation().fit(table).recipe_[0] == "Unnamed: 0: the number of the row; left out"


def test_numbers_can_be_categories():
    table = pandas.DataFrame({"code": [3, 1, 2, 1], "a": [1.0, 2.0, 3.0, 4.0]})
    preparation = TablePreparation(categorical=["code"]).fit(table)
    assert [*preparation.get_feature_names_out()] == ["a", "code_1", "code_2", "code_3"]
    # A gap elsewhere in the column makes pandas read 1.0 instead of 1.
    later = pandas.DataFrame({"code": [1.0, np.nan], "a": [0.0, 0.0]})
    np.testing.assert_array_equal(preparation.transform(later)[:, 1:], [[1, 0, 0], [0, 0, 0]])


def test_pandas_categories_are_categories_whatever_they_hold():
    table = pandas.DataFrame({"code": pandas.Categorical([3, 1, 2, 1]), "a": [1.0, 2.0, 3.0, 4.0]})
    assert "code_3" in TablePreparation().fit(table).get_feature_names_out()


def test_new_categories_have_zeros_and_are_named():
    table = _table()
    preparation = TablePreparation().fit(table)
    names = [*preparation.get_feature_names_out()]
    columns = [names.index(f"colour_{each}") for each in ("red", "green", "blue", "None")]
    with pytest.warns(RangeWarning, match=r"column 'colour' has categories .* 'pink'"):
        later = preparation.transform(table.assign(colour="pink"))
    assert not later[:, columns].any()


def test_columns_are_found_by_name():
    table = _table()
    preparation = TablePreparation().fit(table)
    shuffled = table[table.columns[::-1]].assign(further=1.0)
    np.testing.assert_array_equal(preparation.transform(shuffled), preparation.transform(table))
    with pytest.raises(InputError, match=r"no column 'shop'.*had in fit"):
        preparation.transform(table.drop(columns="shop"))


def test_arrays_of_objects_are_tables():
    rows = np.array([["a", 1, "x"], ["b", 2, "x"], ["a", None, "x"]], dtype=object)
    prepared = TablePreparation().fit_transform(rows)
    np.testing.assert_array_equal(prepared, [[1, 0, 1, 0], [2, 0, 0, 1], [1.5, 1, 1, 0]])


def test_float32_stays_float32():
    table = pandas.DataFrame({"a": np.arange(5, dtype=np.float32), "b": list("xyxyx")})
    assert TablePreparation().fit_transform(table).dtype == np.float32
    assert TablePreparation(dtype="float64").fit_transform(table).dtype == np.float64
    assert TablePreparation().fit_transform(table.assign(c=range(5))).dtype == np.float64
    assert TablePreparation(dtype="float32").fit_transform(_table()).dtype == np.float32


def test_nullable_and_arrow_types():
    plain = pandas.DataFrame({"a": [1, 2, 3], "b": [True, False, True], "c": ["x", "y", "x"]})
    expected = TablePreparation().fit_transform(plain)
    for backend in ("numpy_nullable", "pyarrow"):
        same = TablePreparation().fit_transform(plain.convert_dtypes(dtype_backend=backend))
        np.testing.assert_array_equal(same, expected)


def test_set_output_names_the_columns():
    frame = TablePreparation().set_output(transform="pandas").fit_transform(_table())
    assert "colour_red" in frame.columns
    assert "size" in frame.columns


def test_names_stay_different_where_a_column_is_called_like_a_category():
    table = pandas.DataFrame({"a": ["b", "c", "b"], "a_b": [1.0, 2.0, 4.0]})
    assert [*TablePreparation().fit(table).get_feature_names_out()] == [
        "number__a_b",
        "category__a_b",
        "a_c",
    ]


def test_in_a_pipeline_with_a_model_that_chooses_for_itself():
    table = _table(400)
    target = table["size"].fillna(0.0) + (table["colour"] == "red")
    model = make_pipeline(TablePreparation(), SketchedKernelRidge(random_state=0))
    assert clone(model).fit(table, target).score(table, target) > 0.9


def test_a_pickle_gives_the_same_numbers():
    fitted = TablePreparation().fit(_table())
    later = _table(50, seed=1)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(later), fitted.transform(later))


def test_a_linear_model_profits_from_dates():
    table = _table(400)[["day"]]
    target = table["day"].dt.hour.to_numpy() / 24
    assert (
        make_pipeline(TablePreparation(), Ridge(1e-6)).fit(table, target).score(table, target)
        > 0.99
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"categorical": "colour"}, r"allowed is a list of names .*\['colour'\]"),
        ({"max_categories": 1.5}, "max_categories=1.5 is a float"),
        ({"max_categories": 0}, "max_categories=0 is out of range"),
        ({"many_categories": "drop"}, "use one of 'frequency', 'hash'"),
        ({"dtype": "int32"}, "allowed are float32 and float64"),
        ({"categorical": ["no such"]}, "no column 'no such'; its columns are 'size', 'colour'"),
        ({"categorical": ["size"], "numeric": ["size"]}, "more than one of categorical, numeric"),
        ({"dates": {"colour": "%d"}}, "column 'colour' has dates like %d, but "),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises((InputError, InputTypeError), match=message):
        TablePreparation(**options).fit(_table())


def test_a_few_words_among_many_numbers_are_refused_by_row():
    table = pandas.DataFrame({"a": [*map(str, range(300)), "12o"], "b": range(301)})
    with pytest.raises(InputError, match="column 'a' has numbers, but '12o' in row 300"):
        TablePreparation().fit(table)
    lenient = TablePreparation(numeric=["a"]).fit(table)
    assert "missing (1 row)" in lenient.recipe_[0]
    assert "301 categories" in TablePreparation(categorical=["a"]).fit(table).recipe_[0]


def test_one_word_among_few_numbers_is_no_reason_for_categories():
    table = pandas.DataFrame({"a": [*map(str, range(40)), "x"], "b": range(41)})
    with pytest.raises(InputError, match="column 'a' has numbers, but 'x' in row 40"):
        TablePreparation().fit(table)
    floors = pandas.DataFrame({"a": [*"1231231231231231231", "B"], "b": range(20)})
    assert "4 categories" in TablePreparation().fit(floors).recipe_[0]


def test_a_row_of_a_part_has_its_name_in_the_whole():
    table = _table()
    table.loc[4, "size"] = np.inf
    with pytest.raises(InputError, match=r"in row 4 \(the first is 0\)"):
        TablePreparation().fit(table.iloc[2:])
    table.index = [f"r{k}" for k in range(len(table))]
    with pytest.raises(InputError, match="in row r4;"):
        TablePreparation().fit(table.iloc[2:])


def test_words_in_place_of_numbers_are_refused_later_by_row():
    table = _table()
    preparation = TablePreparation().fit(table)
    wrong = table.assign(size=["big" if k == 3 else "1" for k in range(len(table))])
    with pytest.raises(InputError, match=r"column 'size' had numbers.*'big' in row 3"):
        preparation.transform(wrong)
    with pytest.raises(InputTypeError, match=r"column 'day' had dates .* type int64"):
        preparation.transform(table.assign(day=range(len(table))))


def test_infinite_numbers_are_refused_by_row():
    table = _table()
    table.loc[4, "size"] = np.inf
    with pytest.raises(InputError, match="column 'size' has an infinite value in row 4"):
        TablePreparation().fit(table)


def test_cells_that_are_lists_are_refused():
    with pytest.raises(InputTypeError, match="column 'a' has cells that are no single values"):
        TablePreparation().fit(pandas.DataFrame({"a": [[1], [2]]}))


def test_a_table_that_says_nothing_is_refused():
    with pytest.raises(InputError, match=r"no column of the table .* says anything: a: 1 in every"):
        TablePreparation().fit(pandas.DataFrame({"a": [1, 1], "b": [None, None]}))


def test_a_failed_fit_leaves_the_last_one_intact():
    preparation = TablePreparation().fit(_table())
    with pytest.raises(InputError):
        preparation.fit(pandas.DataFrame({"a": [1, 1]}))
    assert preparation.transform(_table()).shape[0] == 200


def test_names_that_occur_twice_are_refused():
    table = pandas.DataFrame(np.eye(3), columns=["a", "b", "a"])
    with pytest.raises(InputError, match="several columns are called 'a'"):
        TablePreparation().fit(table)
