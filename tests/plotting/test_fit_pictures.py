"""Pictures of the fit of clusters: what stands where."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from pgm_bma import EMAClusterer, bivariate_residuals
from pgm_bma.plotting import plot_criteria, plot_profile_intervals, plot_residuals


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 400)
    X = pd.DataFrame({f"q{i}": np.where(rng.random(400) < 0.8, z, 1 - z) for i in range(5)})
    X["three"] = np.array(["no", "maybe", "yes"])[np.clip(z + rng.integers(0, 2, 400), 0, 2)]
    return EMAClusterer(range(1, 4), n_init=4, random_state=0).fit(X), X


def test_criteria_stand_at_their_distance_from_their_best(fitted):
    model, _ = fitted
    path = model.n_clusters_path_
    ax = plot_criteria(model)
    lines = {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}
    assert set(lines) >= {"evidence (-2 x score): 2", "BIC: 2"} and len(lines) == 6
    np.testing.assert_allclose(lines["BIC: 2"].get_ydata(), path["bic"] - path["bic"].min())
    np.testing.assert_allclose(
        lines["evidence (-2 x score): 2"].get_ydata(), 2 * (path["score"].max() - path["score"]), atol=1e-9
    )
    assert "chosen by the evidence, 2" in ax.get_xlabel()
    with pytest.raises(ValueError, match="a single number"):
        plot_criteria(path.iloc[:1])


def test_residuals_are_symmetric_and_the_largest_columns_stay(fitted):
    model, X = fitted
    pairs = bivariate_residuals(model, X)
    ax = plot_residuals(pairs)
    image = np.asarray(ax.images[0].get_array())
    names = [tick.get_text() for tick in ax.get_xticklabels()]
    off = ~np.eye(6, dtype=bool)
    assert set(names) == set(X) and (image == image.T)[off].all()
    line = pairs.iloc[0]
    drawn = image[names.index(line["first"]), names.index(line["second"])]
    assert drawn == pytest.approx(max(line["residual"], 1.0))
    few = plot_residuals(pairs, top=2)
    assert {tick.get_text() for tick in few.get_xticklabels()} == {line["first"], line["second"]}
    assert few.get_title().startswith("2 of 6 columns")


def test_profiles_have_a_line_per_state_and_a_point_per_cluster(fitted):
    model, _ = fitted
    profiles = model.profiles_
    ax = plot_profile_intervals(model)
    texts = {text.get_text() for text in ax.texts}
    assert {f"q{i} = 1" for i in range(5)} <= texts and "q0 = 0" not in texts
    assert {"three = maybe", "three = no", "three = yes"} <= texts
    points = {line.get_gid(): line.get_xdata()[0] for line in ax.lines if line.get_gid()}
    assert len(points) == 2 * (5 + 3)
    wanted = profiles[(profiles["column"] == "three") & (profiles["cluster"] == 0)].set_index("state")["probability"]
    at = pd.Series({state: points[f"profile:three:{state}:0"] for state in wanted.index})
    slope, _ = np.polyfit(wanted, at, 1)
    # places are a straight function of the probabilities, within one block
    np.testing.assert_allclose(at - at["no"], slope * (wanted - wanted["no"]), atol=1e-9)
    assert plot_profile_intervals(profiles, top=2).texts[-1].get_text().startswith("2 of 6 columns")
