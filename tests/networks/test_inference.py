"""log_likelihood, predict_proba and impute for networks: all completions, and pgmpy's own queries, as references."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pgmpy.factors.discrete import TabularCPD

from pgm_bma import impute, load_network, log_likelihood, predict_proba
from pgm_bma.metrics import holdout_log2_likelihood
from pgm_bma.networks.evidence import ImpossibleEvidence
from pgm_bma.networks.junction_tree import CliqueTooLarge
from pgm_bma.networks.objects import bayesian_network
from tests.networks.test_junction_tree import coupled_latents, plain, random_network, random_rows
from tests.oracles import network_em as oracle

SEEDS = st.integers(0, 2**32 - 1)


def drawn_case(seed, n_nodes=5):
    """A random network, rows with gaps, and the table that shows them: some nodes without a column, index not 0..n-1."""
    rng = np.random.default_rng(seed)
    cards, parents, cpts = random_network(rng, n_nodes)
    codes = random_rows(rng, cards)
    absent = [v for v in range(len(cards)) if (codes[:, v] < 0).all() and rng.random() < 0.5]
    states = [[f"s{v}{k}" for k in range(r)] for v, r in enumerate(cards)]
    names = [f"n{v}" for v in range(len(cards))]
    model = bayesian_network(names, states, parents, cpts, latents=[names[v] for v in absent])
    columns = {
        names[v]: [states[v][k] if k >= 0 else None for k in codes[:, v]] for v in range(len(cards)) if v not in absent
    }
    data = pd.DataFrame(columns, index=[10 * i + 7 for i in range(len(codes))], dtype=object)
    return model, data, codes, (cards, parents, plain(cpts)), states


# ------------------------------------------------------------------------------------------------ all completions


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_log_likelihood_and_posteriors_equal_enumeration(seed):
    model, data, codes, network, states = drawn_case(seed)
    expected = [np.log(oracle.evidence_probability(row, *network)) for row in codes.tolist()]
    per_row = log_likelihood(model, data, per_row=True)
    assert per_row.index.equals(data.index)
    np.testing.assert_allclose(per_row, expected, atol=1e-11)  # logarithms of size 10, rounded sums behind them
    assert log_likelihood(model, data) == pytest.approx(sum(expected), abs=1e-10)
    names = list(model.nodes())
    both = predict_proba(model, data, names)
    assert list(both.columns) == [(n, s) for n, column in zip(names, states) for s in column]
    for v, name in enumerate(names):
        single = predict_proba(model, data, name)
        assert list(single.columns) == states[v] and single.index.equals(data.index)
        np.testing.assert_array_equal(single.shape, (len(data), len(states[v])))
        np.testing.assert_allclose(both[name], single, atol=1e-12)  # another tree for another question
        for row, found in zip(codes.tolist(), single.to_numpy()):
            np.testing.assert_allclose(found, oracle.marginal(row, v, *network), atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_filled_cells_are_the_most_probable_ones(seed):
    model, data, codes, network, states = drawn_case(seed)
    marginal, joint = impute(model, data), impute(model, data, method="joint")
    for filled in (marginal, joint):
        assert filled.index.equals(data.index) and list(filled.columns) == list(data.columns)
        assert not filled.isna().any(axis=None)
        for name in data:
            seen = data[name].notna()
            assert filled.loc[seen, name].tolist() == data.loc[seen, name].tolist()
    for i, row in enumerate(codes.tolist()):
        chosen = {}
        for v, name in enumerate(model.nodes()):
            if name in data.columns:
                best = oracle.marginal(row, v, *network)
                picked = states[v].index(marginal[name].iloc[i])
                assert best[picked] == pytest.approx(max(best), abs=1e-12)
                chosen[v] = states[v].index(joint[name].iloc[i])
        completions = oracle.completion_probabilities(row, *network)
        fitting = [p for full, p in completions.items() if all(full[v] == k for v, k in chosen.items())]
        assert max(fitting) == pytest.approx(max(completions.values()), abs=1e-12)


def test_joint_and_marginal_answers_differ_where_they_should():
    # P(a): 0.4, 0.3, 0.3; b is uniform over two values given a=0 and certain given a=1, 2
    model = bayesian_network(
        ["a", "b"], [(0, 1, 2), (0, 1)], [(), (0,)], [[[0.4, 0.3, 0.3]], [[0.5, 0.5], [1, 0], [1, 0]]]
    )
    row = pd.DataFrame({"a": [None], "b": [None]})
    assert impute(model, row).iloc[0].tolist() == [0, 0]
    assert impute(model, row, method="joint").iloc[0].tolist() == [1, 0]


def test_draws_follow_the_joint_posterior():
    model = load_network("asia")
    nodes = list(model.nodes())
    row = {n: None for n in nodes} | {"xray": "yes", "smoke": "yes"}
    n = 20_000
    drawn = impute(model, pd.DataFrame([row] * n), method="sample", random_state=0)
    exact = predict_proba(model, pd.DataFrame([row]), nodes).iloc[0]
    for node in nodes:
        for state in ("yes", "no"):
            p = exact[node, state]
            # five standard errors: 16 comparisons fail by chance less than once in 10^5 runs
            assert (drawn[node] == state).mean() == pytest.approx(p, abs=5 * np.sqrt(p * (1 - p) / n) + 1e-12)
    pair = predict_proba(model, pd.DataFrame([row | {"lung": "yes"}]), "bronc")["yes"].iloc[0]
    both = ((drawn["lung"] == "yes") & (drawn["bronc"] == "yes")).mean()
    p = pair * exact["lung", "yes"]
    assert both == pytest.approx(p, abs=5 * np.sqrt(p * (1 - p) / n))
    again = impute(model, pd.DataFrame([row] * 50), method="sample", random_state=3)
    pd.testing.assert_frame_equal(again, impute(model, pd.DataFrame([row] * 50), method="sample", random_state=3))
    assert len(again.drop_duplicates()) > 1  # equal rows are drawn independently


# ---------------------------------------------------------------------------------------------- pgmpy's own answers


def alarm_rows(n, missing, seed=0):
    model = load_network("alarm")
    from pgm_bma import simulate

    rows = simulate(model, n, random_state=seed)
    return model, rows.mask(np.random.default_rng(seed).random(rows.shape) < missing)


def test_alarm_equals_variable_elimination():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pgmpy.inference import VariableElimination

    model, rows = alarm_rows(4, 0.3)
    engine = VariableElimination(model)
    for variable in ("HYPOVOLEMIA", "CATECHOL", "PRESS"):
        found = predict_proba(model, rows.drop(columns=variable), variable)
        for i, (_, row) in enumerate(rows.drop(columns=variable).iterrows()):
            query = engine.query([variable], evidence=row.dropna().to_dict(), show_progress=False)
            expected = [query.get_value(**{variable: s}) for s in found.columns]
            np.testing.assert_allclose(found.iloc[i], expected, atol=1e-9)


def test_alarm_equals_predict_probability():
    model, rows = alarm_rows(3, 0.0)
    hidden = ["SHUNT", "VENTLUNG"]
    theirs = model.predict_probability(rows.drop(columns=hidden))
    ours = predict_proba(model, rows.drop(columns=hidden))
    for variable, state in ours.columns:
        np.testing.assert_allclose(ours[variable, state], theirs[f"{variable}_{state}"], atol=1e-9)


def test_no_evidence_at_all_gives_the_prior():
    model = load_network("cancer")
    found = predict_proba(model, pd.DataFrame(index=range(3)), "Cancer")
    np.testing.assert_allclose(found["True"], [0.01163] * 3, atol=1e-12)
    assert log_likelihood(model, pd.DataFrame({"unrelated": [1, 2]})) == 0.0


# ----------------------------------------------------------------------------------------------------- contracts


def small_model():
    return bayesian_network(
        ["h", "a", "b"],
        [("u", "v"), (0, 1), ("x", "y")],
        [(), (0,), (0,)],
        [[[0.5, 0.5]], [[0.9, 0.1], [0.2, 0.8]], [[1.0, 0.0], [0.5, 0.5]]],
        latents=["h"],
    )


def test_filled_columns_keep_sensible_types():
    model = small_model()
    data = pd.DataFrame(
        {
            "a": [0, None, 1],
            "b": pd.Categorical(["x", "y", None], categories=["y", "x", "never"]),
            "other": [1.5, None, 2],
        }
    )
    filled = impute(model, data)
    assert filled["a"].tolist() == [0, 1, 1] and filled["a"].dtype.kind == "i"
    assert filled["b"].dtype == data["b"].dtype and filled["b"].tolist() == ["x", "y", "x"]
    assert filled["other"].equals(data["other"]) and data["a"].isna().sum() == 1
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": [0, None, 1], "b": ["x", "y", None]})
    assert impute(model, frame)["b"].tolist() == ["x", "y", "x"]
    np.testing.assert_allclose(predict_proba(model, frame, "h"), predict_proba(model, data, "h"), rtol=1e-15)


def test_many_states_and_repeated_index_labels():
    n = 300  # more states than the smallest integers hold, in a node without a column
    tables = [np.full((1, n), 1 / n), np.array([[0.9, 0.1] if k == 290 else [0.001, 0.999] for k in range(n)])]
    model = bayesian_network(["many", "seen"], [range(n), ("rare", "common")], [(), (0,)], tables)
    data = pd.DataFrame({"many": [None, 5, None], "seen": ["rare", None, "common"]}, index=["a", "a", "b"])
    filled = impute(model, data, method="joint")
    assert filled["many"].tolist()[:2] == [290, 5] and filled["seen"].tolist() == ["rare", "common", "common"]
    drawn = impute(model, data[["seen"]], method="sample", random_state=0)
    assert drawn["seen"].tolist()[0::2] == ["rare", "common"] and list(drawn.index) == ["a", "a", "b"]


def test_an_observed_variable_is_certain_and_evidence_on_a_latent_counts():
    model = small_model()
    found = predict_proba(model, pd.DataFrame({"a": [1, None], "h": ["u", "u"]}), ["a", "h"])
    np.testing.assert_allclose(found["a"], [[0, 1], [0.9, 0.1]])
    np.testing.assert_allclose(found["h"], [[1, 0], [1, 0]])
    assert found["a"].columns.tolist() == [0, 1]


def test_impossible_rows_are_named_and_have_no_likelihood():
    model = small_model()
    data = pd.DataFrame({"h": [None, "u", "u"], "b": ["y", "x", "y"], "a": [0, 0, None]}, index=["one", "two", "three"])
    per_row = log_likelihood(model, data, per_row=True)
    assert per_row["three"] == -np.inf and np.isfinite(per_row[["one", "two"]]).all()
    assert log_likelihood(model, data) == -np.inf
    assert np.isfinite(log_likelihood(model, data, sample_weight=[1, 2, 0]))
    for ask in (
        lambda: predict_proba(model, data, "a"),
        lambda: impute(model, data),
        lambda: impute(model, data, "joint"),
    ):
        with pytest.raises(ImpossibleEvidence, match=r"row 2 \(index 'three'\)"):
            ask()
    hidden = small_model()  # impossible only through a hidden variable: h must be v, which a rules out
    hidden.add_cpds(TabularCPD("a", 2, [[0, 1], [1, 0]], ["h"], [2], state_names={"a": [0, 1], "h": ["u", "v"]}))
    with pytest.raises(ImpossibleEvidence, match="row 1"):
        predict_proba(hidden, pd.DataFrame({"a": [0, 1], "b": ["y", "y"]}), "h")


@pytest.mark.filterwarnings("ignore:column 'b' holds 1 value outside the states of that node")  # expected of this row
def test_errors_name_the_cure():
    model = small_model()
    data = pd.DataFrame({"a": [0], "b": ["x"]})
    with pytest.raises(ValueError, match="variables names 'nobody'"):
        predict_proba(model, data, "nobody")
    with pytest.raises(ValueError, match="every node is a column"):
        predict_proba(model, data.assign(h="u"))
    with pytest.raises(ValueError, match="columns of data have no names"):
        predict_proba(model, [[0, "x"]], "h")
    with pytest.raises(ValueError, match="method='best'"):
        impute(model, data, method="best")
    with pytest.raises(ValueError, match="column 'b' holds 'z'"):
        predict_proba(model, pd.DataFrame({"b": ["z"]}), "h")
    unknown = predict_proba(model, pd.DataFrame({"b": ["z"]}), "h", handle_unknown="missing")
    np.testing.assert_allclose(unknown, [[0.5, 0.5]])
    with pytest.raises(ValueError, match="'b' has no conditional probabilities"):
        log_likelihood(_without_b(), data)
    cards, parents = coupled_latents(25)
    cpts = [np.full((2 ** len(ps), 2), 0.5) for ps in parents]
    names = [f"n{i}" for i in range(len(cards))]
    big = bayesian_network(names, [(0, 1)] * len(cards), parents, cpts)
    rows = pd.DataFrame({name: [0] for name in names[25:]})
    with pytest.raises(CliqueTooLarge, match="33,554,432 joint states over 25 variables"):
        predict_proba(big, rows, "n0")
    assert log_likelihood(big, rows.iloc[:, :0]) == 0.0  # nothing observed: everything is barren


def _without_b():
    model = small_model()
    model.cpds = [cpd for cpd in model.cpds if cpd.variable != "b"]
    return model


def test_values_that_are_no_states_name_a_cure_that_exists():
    model, rows = load_network("asia"), pd.DataFrame({"smoke": ["yes", "often"]})
    message = (
        "column 'smoke' holds 'often', which is not a state of that node of the network; correct it, or set it to NaN"
    )
    for ask in (log_likelihood, predict_proba, impute, holdout_log2_likelihood):
        with pytest.raises(ValueError, match=message):
            ask(model, rows)
    with pytest.raises(ValueError, match="variables names 5, which is not a node"):
        predict_proba(model, rows, 5)
    with pytest.raises(ValueError, match="max_clique_size='big'"):
        log_likelihood(model, rows, max_clique_size="big")


def test_tables_of_other_kinds_keep_their_other_columns_when_filled():
    model = load_network("asia")
    pandas = pd.DataFrame({"lung": [None, "yes"], "smoke": ["yes", None], "weight": [61.5, 80.25]})
    wanted = impute(model, pandas)
    polars = pytest.importorskip("polars").from_pandas(pandas)
    pd.testing.assert_frame_equal(impute(model, polars), wanted, check_dtype=False)
    rows = [pandas.iloc[0].to_dict(), pandas.iloc[1].to_dict()]
    pd.testing.assert_frame_equal(impute(model, rows), wanted, check_dtype=False)
    pd.testing.assert_frame_equal(impute(model, rows[0]), wanted.iloc[:1], check_dtype=False)
