"""pgmpy and networkx objects of a forest average: single structures with posterior-mean tables, and the graph of all arcs."""

from pgm_bma.forests.average import tree_tables
from pgm_bma.networks.graphs import posterior_graph
from pgm_bma.networks.objects import bayesian_network


def forest_network(average, schema, class_node, parents, with_class):
    """``DiscreteBayesianNetwork`` of one structure.

    class_node : (name, states, whether it is latent)     parents, with_class : (n_columns,), -1 = no other column
    """
    families, tables = tree_tables(average, parents, with_class)
    name, class_states, latent = class_node
    names, states = [name, *schema.names], [class_states, *schema.states]
    return bayesian_network(names, states, families, tables, latents=[name] if latent else [])


def arc_graph(class_name, class_arcs, edges, structure_prior):
    """``networkx.DiGraph`` of all arcs with their posterior; class_arcs : Series by column, edges : DataFrame parent x child."""
    arcs = {(class_name, name): p for name, p in class_arcs.items()}
    arcs.update({(a, b): p for a, row in edges.iterrows() for b, p in row.items() if a != b})
    return posterior_graph([class_name, *edges.columns], arcs, prior=structure_prior)
