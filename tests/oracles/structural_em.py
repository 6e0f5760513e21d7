"""Slow and literal twins of structural EM and of Bound and Collapse: plain Python loops over cases, completions, structures.

A model is a pair (class_probs, tables): tables[attribute][class][parent_state][value]; parents[attribute] is -1 or the
index of the attribute parent. Nothing here is shared with pgm_bma.
"""

import itertools
import math

# ---------------------------------------------------------------- inference and EM on complete attributes


def joint(model, parents, row):
    class_probs, tables = model
    out = []
    for c, p in enumerate(class_probs):
        for i, x in enumerate(row):
            p *= tables[i][c][row[parents[i]] if parents[i] >= 0 else 0][x]
        out.append(p)
    return out


def posterior(model, parents, row):
    p = joint(model, parents, row)
    return [v / sum(p) for v in p]


def observed_log_likelihood(model, parents, rows):
    return sum(math.log(sum(joint(model, parents, row))) for row in rows)


def log_posterior(model, parents, rows, alpha=1.0):
    """The objective that the update (n + alpha)/(sum + r alpha) climbs: log p(o) + alpha * sum of log parameters."""
    class_probs, tables = model
    penalty = sum(math.log(p) for p in class_probs)
    penalty += sum(math.log(p) for t in tables for per_class in t for line in per_class for p in line)
    return observed_log_likelihood(model, parents, rows) + alpha * penalty


def expected_counts(rows, cards, parents, responsibilities):
    k = len(responsibilities[0])
    class_counts = [0.0] * k
    counts = []
    for i, r in enumerate(cards):
        q = cards[parents[i]] if parents[i] >= 0 else 1
        counts.append([[[0.0] * r for _ in range(q)] for _ in range(k)])
    for row, resp in zip(rows, responsibilities):
        for c in range(k):
            class_counts[c] += resp[c]
            for i, x in enumerate(row):
                counts[i][c][row[parents[i]] if parents[i] >= 0 else 0][x] += resp[c]
    return class_counts, counts


def _mean(line, alpha):
    total = sum(line) + alpha * len(line)
    return [(v + alpha) / total for v in line] if total > 0 else [1.0 / len(line)] * len(line)


def parameters(counts, alpha=1.0):
    class_counts, tables = counts
    return _mean(class_counts, alpha), [[[_mean(line, alpha) for line in c] for c in t] for t in tables]


def em_update(model, parents, rows, cards, alpha=1.0):
    return parameters(expected_counts(rows, cards, parents, [posterior(model, parents, r) for r in rows]), alpha)


# ---------------------------------------------------------------- scores


def log_k2(line, alpha=1.0):
    """log of the Dirichlet-multinomial probability of the (possibly fractional) counts of one parent state."""
    total, prior = sum(line), alpha * len(line)
    out = math.lgamma(prior) - math.lgamma(prior + total)
    return out + sum(math.lgamma(alpha + v) - math.lgamma(alpha) for v in line)


def log_k2_prequential(sequence, r):
    """The same for whole cases, as the product of one-step predictions (no gamma function)."""
    seen, out = [0] * r, 0.0
    for x in sequence:
        out += math.log((1 + seen[x]) / (r + sum(seen)))
        seen[x] += 1
    return out


def hard(responsibilities):
    """Most probable class as a 0/1 table; ties go to the lowest index."""
    return [[1.0 if c == r.index(max(r)) else 0.0 for c in range(len(r))] for r in responsibilities]


def completed_score(rows, cards, parents, responsibilities):
    class_counts, tables = expected_counts(rows, cards, parents, responsibilities)
    return log_k2(class_counts) + sum(log_k2(line) for t in tables for c in t for line in c)


def cheeseman_stutz(model, parents, rows, cards):
    responsibilities = [posterior(model, parents, r) for r in rows]
    counts = expected_counts(rows, cards, parents, responsibilities)
    mean = parameters(counts)
    complete = sum(n * math.log(p) for n, p in zip(counts[0], mean[0]))
    for t, m in zip(counts[1], mean[1]):
        for tc, mc in zip(t, m):
            for line, probs in zip(tc, mc):
                complete += sum(n * math.log(p) for n, p in zip(line, probs))
    return (
        completed_score(rows, cards, parents, responsibilities)
        - complete
        + observed_log_likelihood(mean, parents, rows)
    )


def family_scores(rows, cards, responsibilities):
    """scores[i][j + 1]: attribute i with the class and attribute j as parents (index 0: the class alone; None for j = i)."""
    n = len(cards)
    out = [[None] * (n + 1) for _ in range(n)]
    for i in range(n):
        for j in range(-1, n):
            if i == j:
                continue
            parents = [-1] * n
            parents[i] = j
            tables = expected_counts(rows, cards, parents, responsibilities)[1]
            out[i][j + 1] = sum(log_k2(line) for c in tables[i] for line in c)
    return out


# ---------------------------------------------------------------- structures


def is_forest(parents):
    for i in range(len(parents)):
        seen, node = set(), i
        while node >= 0:
            if node in seen:
                return False
            seen.add(node)
            node = parents[node]
    return True


def forests(n):
    """Every assignment of at most one attribute parent without a cycle: (n + 1)^(n - 1) of them."""
    return [p for p in itertools.product(range(-1, n), repeat=n) if is_forest(p)]


def total(scores, parents):
    return sum(scores[i][p + 1] for i, p in enumerate(parents))


def exhaustive(scores, tolerance=1e-9):
    """Best total over all structures, and every structure that reaches it."""
    everything = [(total(scores, p), p) for p in forests(len(scores))]
    best = max(v for v, _ in everything)
    return best, [list(p) for v, p in everything if v >= best - tolerance]


def hill_climb(scores, parents):
    """Best of all removals, reversals and additions of one arc, first found on a tie, while it gains more than 1e-9."""
    parents, moves = list(parents), 0
    n = len(parents)
    while True:
        candidates = []
        for child in range(n):
            old = parents[child]
            if old >= 0:
                removed = parents[:]
                removed[child] = -1
                candidates.append(removed)
                if parents[old] < 0:
                    turned = removed[:]
                    turned[old] = child
                    candidates.append(turned)
            else:
                for parent in range(n):
                    if parent != child:
                        added = parents[:]
                        added[child] = parent
                        candidates.append(added)
        best, best_gain = None, 1e-9
        for candidate in candidates:
            gain = total(scores, candidate) - total(scores, parents)
            if is_forest(candidate) and gain > best_gain + 1e-12:
                best, best_gain = candidate, gain
        if best is None:
            return parents, moves
        parents, moves = best, moves + 1


# ---------------------------------------------------------------- Bound and Collapse


def completions(rows, columns, cards):
    """All completions of the missing cells (None) of the chosen columns; rows outside those columns stay."""
    holes = [(r, c) for r, row in enumerate(rows) for c in columns if row[c] is None]
    for values in itertools.product(*[range(cards[c]) for _, c in holes]):
        filled = [list(row) for row in rows]
        for (r, c), v in zip(holes, values):
            filled[r][c] = v
        yield filled


def bounds_by_enumeration(rows, child, parents, cards, alpha=1.0):
    """Least and greatest (alpha + n_k)/(r alpha + n) over all completions, {(configuration, k): (low, high)}."""
    out = {}
    for filled in completions(rows, [*parents, child], cards):
        for configuration in itertools.product(*[range(cards[p]) for p in parents]):
            line = [0.0] * cards[child]
            for row in filled:
                if tuple(row[p] for p in parents) == configuration:
                    line[row[child]] += 1
            for k, p in enumerate(_mean(line, alpha)):
                low, high = out.get((configuration, k), (p, p))
                out[configuration, k] = min(low, p), max(high, p)
    return out


def bound_and_collapse(rows, child, parents, cards, configuration, alpha=1.0):
    """One parent configuration by the definitions: counts n, possible u, lower, upper, phi, collapsed."""
    r = cards[child]
    n, u, other = [0] * r, [0] * r, [0] * r
    for row in rows:
        fits = all(row[p] is None or row[p] == s for p, s in zip(parents, configuration))
        if not fits:
            continue
        complete = row[child] is not None and all(row[p] is not None for p in parents)
        if complete:
            n[row[child]] += 1
            continue
        for k in range(r):
            u[k] += row[child] is None or row[child] == k
            other[k] += row[child] is None or row[child] != k
    a = alpha * r + sum(n)
    phi = _mean(n, alpha)
    local = [[(alpha + n[k] + (u[k] if k == l else 0)) / (a + u[l]) for k in range(r)] for l in range(r)]
    return {
        "n": n,
        "u": u,
        "upper": [(alpha + n[k] + u[k]) / (a + u[k]) for k in range(r)],
        "lower": [(alpha + n[k]) / (a + other[k]) for k in range(r)],
        "phi": phi,
        "local": local,
        "collapsed": [sum(phi[l] * local[l][k] for l in range(r)) for k in range(r)],
    }


def collapse_model(rows, cards, parents, class_column, k):
    """The model Bound and Collapse makes of a partly known class column (None = unknown)."""
    table = [[*row, c] for row, c in zip(rows, class_column)]
    everything = [*cards, k]
    n = len(cards)
    class_probs = bound_and_collapse(table, n, [], everything, ())["collapsed"]
    tables = []
    for i in range(n):
        per_class = []
        for c in range(k):
            if parents[i] < 0:
                per_class.append([bound_and_collapse(table, i, [n], everything, (c,))["collapsed"]])
            else:
                per_class.append(
                    [
                        bound_and_collapse(table, i, [n, parents[i]], everything, (c, s))["collapsed"]
                        for s in range(cards[parents[i]])
                    ]
                )
        tables.append(per_class)
    return class_probs, tables


# ---------------------------------------------------------------- loops


def value_of(model, parents, rows, cards, convergence):
    if convergence == "completed_score":
        return completed_score(rows, cards, parents, hard([posterior(model, parents, r) for r in rows]))
    if convergence == "log_posterior":
        return log_posterior(model, parents, rows)
    return observed_log_likelihood(model, parents, rows)


def em(model, parents, rows, cards, convergence="completed_score", max_iter=150, tol=1e-6):
    """Updates until the value changes by less than tol * |value|; returns model, updates, value."""
    old = value_of(model, parents, rows, cards, convergence)
    for update in range(1, max_iter + 1):
        model = em_update(model, parents, rows, cards)
        new = value_of(model, parents, rows, cards, convergence)
        if abs(new - old) < tol * abs(old):
            return model, update, new
        old = new
    return model, max_iter, old


def bound_collapse_em(model, parents, rows, cards, loop="released", threshold=0.51, max_iter=150, tol=1e-6):
    """BC+EM (SEM Fig. 2); returns model, EM updates, rounds (one dict each)."""
    k = len(model[0])
    updates, rounds, best = 0, [], None
    while updates < max_iter:
        column = []
        for row in rows:
            p = posterior(model, parents, row)
            column.append(p.index(max(p)) if max(p) > threshold else None)
        model = collapse_model(rows, cards, parents, column, k)
        steps = 1 if loop == "alternating" else max_iter - updates
        model, done, value = em(model, parents, rows, cards, max_iter=steps, tol=tol)
        updates += done
        rounds.append({"outer": len(rounds) + 1, "unassigned": column.count(None), "it": done, "cur": value})
        if best is not None:
            if loop == "released" and value < best[1] - 1e-9:  # keep the better model when a round does not gain
                return best[0], updates, rounds
            if abs(value - best[1]) < tol * abs(best[1]):
                return model, updates, rounds
        best = model, value
    return best[0], updates, rounds


def run_score(model, parents, rows, cards, completion):
    """What a run must not lower: the completed score, plus the entropy of the completion when that is soft."""
    soft = [posterior(model, parents, r) for r in rows]
    if completion == "most_probable":
        return completed_score(rows, cards, parents, hard(soft))
    entropy = -sum(p * math.log(p) for r in soft for p in r if p > 0)
    return completed_score(rows, cards, parents, soft) + entropy


def structural_em(model, rows, cards, parameters_by="em", search="hill_climb", completion="most_probable", **how):
    """Alternate parameter fitting and structure search from naive Bayes; returns model, parents, updates, scores of the rounds.

    A round that lowers the score of the run is given up.
    """
    parents, updates, scores, kept = [-1] * len(cards), 0, [], None
    while True:
        if parameters_by == "em":
            model, done, _ = em(model, parents, rows, cards, **how)
        else:
            model, done, _ = bound_collapse_em(model, parents, rows, cards, loop=parameters_by, **how)
        updates += done
        score = run_score(model, parents, rows, cards, completion)
        if kept is not None and score < scores[-1] - 1e-9 * abs(scores[-1]):
            return *kept, updates, scores
        kept = model, list(parents)
        scores.append(score)
        soft = [posterior(model, parents, r) for r in rows]
        weights = soft if completion == "expected" else hard(soft)
        table = family_scores(rows, cards, weights)
        if search == "hill_climb":
            new, _ = hill_climb(table, parents)
        else:
            best, found = exhaustive(table)
            new = parents if total(table, parents) >= best - 1e-9 else found[0]
        if list(new) == list(parents):
            return model, list(parents), updates, scores
        parents = list(new)
        model = parameters(expected_counts(rows, cards, parents, soft))


# ---------------------------------------------------------------- the expectation over completions


def expected_log_score(rows, cards, parents, model):
    """Sum over all completions of cluster and missing cells (-1) of probability x log score of the completed table."""
    k = len(model[0])
    ways = []
    for row in rows:
        fillings = itertools.product(*[range(r) if x < 0 else [x] for x, r in zip(row, cards)])
        found = [(c, filled, joint(model, parents, filled)[c]) for filled in fillings for c in range(k)]
        total = sum(p for *_, p in found)
        ways.append([(c, filled, p / total) for c, filled, p in found])
    expectation = 0.0
    for completion in itertools.product(*ways):
        clusters = [[float(c == b) for b in range(k)] for c, *_ in completion]
        score = completed_score([filled for _, filled, _ in completion], cards, parents, clusters)
        expectation += math.prod(p for *_, p in completion) * score
    return expectation
