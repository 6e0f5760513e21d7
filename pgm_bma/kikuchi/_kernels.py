"""Compiled loops of Kikuchi-Bayes: counting, interaction terms, losses, scores and leave-one-out contrasts.

All see flat arrays, and `Tables` say where in them the tables are. A set of attributes number t has columns `columns[t, :]` (-1
fills up), the cell of a row is sum_j code_j * strides[t, j], and its table of (cells, n_classes) starts at `offsets[t]` of the
flat array. The strict subsets of t that count are `parts[pointers[t]:pointers[t + 1]]`, and `part_strides` turns the digits of
a cell of t into the cell of the part.
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.runtime.compiling import compiled

_SETS = 16  # whose contrasts are filled at a time
_BLOCK = 2048  # rows scored at a time, so that their sums stay in the cache


class Tables(NamedTuple):
    """Sets of attributes and where their tables lie: columns and strides (n_sets, width), offsets (n_sets + 1,)."""

    columns: np.ndarray
    strides: np.ndarray
    offsets: np.ndarray
    n_classes: int


@compiled
def _n_members(tables, t):
    size = 0
    while size < tables.columns.shape[1] and tables.columns[t, size] >= 0:
        size += 1
    return size


@compiled
def _line(codes, r, tables, t, size):
    """Return where the line of row r in the table of set t begins, -1 where one of its columns is missing."""
    cell = 0
    for j in range(size):
        code = codes[r, tables.columns[t, j]]
        if code < 0:
            return -1
        cell += code * tables.strides[t, j]
    return tables.offsets[t] + cell * tables.n_classes


@compiled
def count_cells(codes, target, weights, tables, counts, totals):
    """Add the weight of every row that has all cells of a set; totals[t] is the weight counted."""
    for t in range(tables.columns.shape[0]):
        size = _n_members(tables, t)
        for r in range(codes.shape[0]):
            start = _line(codes, r, tables, t, size)
            if start >= 0:
                counts[start + target[r]] += weights[r]
                totals[t] += weights[r]


@compiled
def fill_logs(counts, taken, alpha, log_mass, offsets, values):
    """values = ln(counts - taken + alpha[t]) - log_mass[t] in the table of every set t; most cells of large tables hold nothing."""
    for t in range(len(alpha)):
        empty = np.log(alpha[t]) - log_mass[t]
        for cell in range(offsets[t], offsets[t + 1]):
            values[cell] = empty
            if counts[cell] > taken:
                values[cell] = np.log(counts[cell] - taken + alpha[t]) - log_mass[t]


@compiled
def subtract_parts(cards, offsets, pointers, parts, part_strides, part_offsets, n_classes, source, values):
    """values[t] -= sum of the tables of its parts, which lie in `source`, set after set.

    cards : (n_sets, width), 1 fills up
    """
    width = cards.shape[1]
    digits = np.zeros(width, dtype=np.int64)
    for t in range(cards.shape[0]):
        digits[:] = 0
        n_cells = (offsets[t + 1] - offsets[t]) // n_classes
        for cell in range(n_cells):
            for e in range(pointers[t], pointers[t + 1]):
                part_cell = 0
                for j in range(width):
                    part_cell += digits[j] * part_strides[e, j]
                start = part_offsets[parts[e]] + part_cell * n_classes
                for c in range(n_classes):
                    values[offsets[t] + cell * n_classes + c] -= source[start + c]
            _advance(digits, cards[t])


@compiled
def subtract_faces(offsets, owners, faces, inner, values):
    """`values[owner] -= values[face]`, one after the other: the Moebius transform when `faces` come attribute by attribute.

    `face` is its owner without one attribute, whose states repeat runs of `inner` values of it; a step of all
    attributes costs (attributes + 1) x cells, not 2^attributes.
    """
    for e in range(len(owners)):
        cell, run = offsets[owners[e]], inner[e]
        face, end = offsets[faces[e]], offsets[faces[e] + 1]
        states = (offsets[owners[e] + 1] - cell) // (end - face)
        while face < end:
            for _ in range(states):
                for k in range(run):
                    values[cell + k] -= values[face + k]
                cell += run
            face += run


@compiled
def _advance(digits, card):
    """The next cell; the last column varies fastest."""
    for j in range(len(digits) - 1, -1, -1):
        digits[j] += 1
        if digits[j] < card[j]:
            return
        digits[j] = 0


@compiled
def focus_losses(counts, totals, smoothed, local, offsets, n_classes, loss, floor, freedom):
    """Three numbers per focus: the loss of the local approximation, the loss of the smoothed table itself, degrees of freedom.

    smoothed : log P(x, c) of the focus' own table; local : log Phi'(x, c) of the approximation, same layout
    loss[t] = sum p(x, c) ln [p(c | x) / Phi'(c | x)], floor[t] the same against `smoothed`, empirical on the left.
    freedom[t] = sum over observed x of (classes seen there - 1).
    """
    for t in range(len(totals)):
        loss[t], floor[t], freedom[t] = 0.0, 0.0, 0.0
        if totals[t] <= 0:
            continue
        for start in range(offsets[t], offsets[t + 1], n_classes):
            n_x, seen = 0.0, 0
            for c in range(n_classes):
                n_x += counts[start + c]
                seen += counts[start + c] > 0
            if n_x <= 0:
                continue
            freedom[t] += seen - 1
            normal_local = _logsumexp(local, start, n_classes)
            normal_smoothed = _logsumexp(smoothed, start, n_classes)
            for c in range(n_classes):
                n = counts[start + c]
                if n > 0:
                    own = np.log(n / n_x)
                    loss[t] += n * (own - local[start + c] + normal_local)
                    floor[t] += n * (own - smoothed[start + c] + normal_smoothed)
        loss[t] /= totals[t]
        floor[t] /= totals[t]


@compiled
def resampled_losses(draws, cells, conditional, result):
    """sum over entries of n ln(n / n_cell) - n conditional, for every resample: (n_resamples,).

    draws : (n_resamples, n_entries)     cells : (n_entries,) rising     conditional : (n_entries,) log P(c | x)
    """
    for k in range(draws.shape[0]):
        total, in_cell = 0.0, 0.0
        for e in range(draws.shape[1]):
            n = float(draws[k, e])
            in_cell += n
            if n > 0.0:
                total += n * (np.log(n) - conditional[e])
            if (e == draws.shape[1] - 1 or cells[e + 1] != cells[e]) and in_cell > 0.0:
                total -= in_cell * np.log(in_cell)
                in_cell = 0.0
        result[k] = total


@compiled
def _logsumexp(values, start, size):
    top = values[start]
    for c in range(1, size):
        top = max(top, values[start + c])
    total = 0.0
    for c in range(size):
        total += np.exp(values[start + c] - top)
    return top + np.log(total)


@compiled
def add_scores(codes, tables, values, scores):
    """scores[r, :] += values of every set at the cell of row r; a set with a missing cell adds nothing."""
    n_rows = codes.shape[0]
    for first in range(0, n_rows, _BLOCK):
        stop = min(first + _BLOCK, n_rows)
        for t in range(tables.columns.shape[0]):
            size = _n_members(tables, t)
            for r in range(first, stop):
                start = _line(codes, r, tables, t, size)
                if start >= 0:
                    for c in range(tables.n_classes):
                        scores[r, c] += values[start + c]


@compiled
def fill_contrasts(codes, target, tables, values, reduced, contrasts):
    """contrasts[r, k, t]: term t of the k-th other class minus that of the row's own class, the row left out; 0 where missing.

    values : terms of the full tables, used for the other classes; reduced : terms with one row less in the cell, for the own class.
    Some sets at a time: their tables stay in the cache, and the contrasts of a row are written one after the other.
    """
    n_sets, n_classes = tables.columns.shape[0], tables.n_classes
    for first in range(0, n_sets, _SETS):
        stop = min(first + _SETS, n_sets)
        for r in range(codes.shape[0]):
            own_class, into = target[r], contrasts[r]
            for t in range(first, stop):
                start = _line(codes, r, tables, t, _n_members(tables, t))
                if start < 0:
                    for k in range(n_classes - 1):
                        into[k, t] = 0.0
                    continue
                own = reduced[start + own_class]
                for k in range(own_class):
                    into[k, t] = values[start + k] - own
                for k in range(own_class, n_classes - 1):
                    into[k, t] = values[start + k + 1] - own


@compiled
def find_lines(codes, target, tables, reduced, lines, own):
    """lines[t, r]: where the line of row r in the table of set t begins, -1 where a cell is missing; own[t, r]: the term of the
    row's class there with the row left out, 0 where missing."""
    for t in range(tables.columns.shape[0]):
        size = _n_members(tables, t)
        for r in range(codes.shape[0]):
            start = _line(codes, r, tables, t, size)
            lines[t, r] = start
            own[t, r] = 0.0 if start < 0 else reduced[start + target[r]]


@compiled
def line_scores(lines, values, theta, scores):
    """scores[r, :] += theta[t] x the line of row r in the table of set t, all sets."""
    n_classes = scores.shape[1]
    for t in range(lines.shape[0]):
        weight = theta[t]
        for r in range(lines.shape[1]):
            start = lines[t, r]
            if start >= 0:
                line, into = values[start : start + n_classes], scores[r]
                for c in range(n_classes):
                    into[c] += weight * line[c]


@compiled
def line_slopes(lines, values, odds, lanes, slopes):
    """slopes[t] += sum over rows and classes of odds[r, c] x the line of row r in the table of set t.

    lanes : (n_classes,), one sum per class, so that the classes of a row are added side by side
    """
    n_classes = odds.shape[1]
    for t in range(lines.shape[0]):
        lanes[:] = 0.0
        for r in range(lines.shape[1]):
            start = lines[t, r]
            if start >= 0:
                line, row = values[start : start + n_classes], odds[r]
                for c in range(n_classes):
                    lanes[c] += row[c] * line[c]
        for c in range(n_classes):
            slopes[t] += lanes[c]


@compiled(fastmath={"reassoc", "contract"})
def line_curvatures(lines, values, own, odds, weights, result):
    """result[t] += sum over rows of weight x the variance of (line - own) under the odds of the other classes, odds[r, own] = 0.

    The rest of the odds is on a difference of 0. Sums may be taken in any order: the result only scales steps.
    """
    n_classes = odds.shape[1]
    for t in range(lines.shape[0]):
        for r in range(lines.shape[1]):
            start = lines[t, r]
            if start >= 0:
                line, row, base = values[start : start + n_classes], odds[r], own[t, r]
                mean, square = 0.0, 0.0
                for c in range(n_classes):
                    difference = line[c] - base
                    mean += row[c] * difference
                    square += row[c] * difference * difference
                result[t] += weights[r] * (square - mean * mean)
