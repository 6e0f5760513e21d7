"""Pictures of what was learned. Every function takes ``ax=None`` and returns the axes it drew on.

matplotlib is imported when something is drawn. Networks are laid out by graphviz when it is installed, by a layered layout
of our own otherwise.
"""

from pgm_bma.plotting._arcs import plot_comparison, plot_runs
from pgm_bma.plotting._charts import plot_calibration, plot_relevance, plot_score_traces, plot_starts
from pgm_bma.plotting._clusters import plot_cluster_profiles, plot_criteria, plot_profile_intervals, plot_residuals
from pgm_bma.plotting._densities import plot_densities
from pgm_bma.plotting._effects import plot_effects
from pgm_bma.plotting._networks import (
    plot_arc_posteriors,
    plot_bound_collapse,
    plot_network,
    plot_structure_difference,
)
from pgm_bma.plotting._regions import plot_interactions, plot_region_graph
from pgm_bma.plotting._terms import plot_evidence, plot_terms

__all__ = [
    "plot_arc_posteriors",
    "plot_bound_collapse",
    "plot_calibration",
    "plot_cluster_profiles",
    "plot_comparison",
    "plot_criteria",
    "plot_densities",
    "plot_effects",
    "plot_evidence",
    "plot_interactions",
    "plot_network",
    "plot_profile_intervals",
    "plot_region_graph",
    "plot_relevance",
    "plot_residuals",
    "plot_runs",
    "plot_score_traces",
    "plot_starts",
    "plot_structure_difference",
    "plot_terms",
]
