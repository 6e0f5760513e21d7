"""pgmpy's HillClimbSearch on alarm: our structure score against pgmpy's own BDeu, time and score of what is found.

1000 rows, equivalent sample size 10, at most four parents. The two scores agree to 1e-8, but hill climbing chooses among
equivalent arcs by the last digits or by the order of a set, so what is found differs from run to run of Python (PYTHONHASHSEED).
"""

import logging
import time

from pgm_bma import FamilyScore, load_network, simulate

from ._common import parser, print_table, run, save_csv


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--tables", type=int, default=5)
    chosen = options.parse_args(argv)
    from pgmpy.causal_discovery import HillClimbSearch
    from pgmpy.structure_score import BDeu

    logging.disable(logging.INFO)
    model, lines = load_network("alarm"), []
    how = {"max_indegree": 4, "return_type": "dag", "show_progress": False}
    for seed in range(chosen.tables):
        X = simulate(model, 1000, random_state=seed)
        judge = BDeu(X, equivalent_sample_size=10)
        for name, score in (("pgm_bma", FamilyScore(X, equivalent_sample_size=10)), ("pgmpy", judge)):
            start = time.process_time()
            graph = HillClimbSearch(scoring_method=score, **how).fit(X).causal_graph_
            seconds = time.process_time() - start
            hits = len(set(graph.edges) & set(model.edges))
            line = {"seed": seed, "score": name, "CPU s": seconds, "BDeu": float(judge.score(graph))}
            lines.append(line | {"arcs": graph.number_of_edges(), "true arcs": hits})
    print_table(lines, "HillClimbSearch on alarm", 3)
    save_csv(lines, "structure_score", chosen.out)


if __name__ == "__main__":
    run(main)
