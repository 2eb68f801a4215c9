"""Prints the expected numbers of regression_evaluation_test.cpp and binary_evaluation_test.cpp, computed by
scikit-learn and NumPy in float64 from the same float32 numbers."""

import numpy as np
from sklearn import metrics

# Two columns; the second has a mean of a million and deviations of about one.
LABELS = np.float32([[3, 1000001], [-0.5, 1000002.5], [2, 999999.25], [7, 1000000], [4.25, 1000001.75]])
ERRORS = np.float32([[-0.5, 0.25], [0.5, -0.5], [0, 1], [1, 0.75], [-2, -0.25]])

SCORES = np.float32(
    [[0.9, 0.2, 0.5], [0.4, 0.7, 0.5], [0.4, 0.1, 0.6], [0.8, 0.6, 0.1], [0.3, 0.9, 0.2], [0.6, 0.6, 0.7]]
)
TRUTH = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 1]])


def show(name, values):
    print(f"{name:32}", ", ".join(repr(float(v)) for v in np.atleast_1d(values)))


def regression():
    y = LABELS.astype(np.float64)
    p = (LABELS + ERRORS).astype(np.float64)
    for how in ("raw_values", "uniform_average"):
        show(f"mse {how}", metrics.mean_squared_error(y, p, multioutput=how))
        show(f"rmse {how}", metrics.root_mean_squared_error(y, p, multioutput=how))
        show(f"mae {how}", metrics.mean_absolute_error(y, p, multioutput=how))
        show(f"r2 {how}", metrics.r2_score(y, p, multioutput=how))
    show("correlation", [np.corrcoef(y[:, c], p[:, c])[0, 1] for c in range(2)])


def labels():
    predicted = (SCORES > 0.5).astype(int)
    columns = range(3)
    show("accuracy", [metrics.accuracy_score(TRUTH[:, c], predicted[:, c]) for c in columns])
    show("precision", metrics.precision_score(TRUTH, predicted, average=None, zero_division=0))
    show("recall", metrics.recall_score(TRUTH, predicted, average=None, zero_division=0))
    show("f1", metrics.f1_score(TRUTH, predicted, average=None, zero_division=0))
    show("auc", metrics.roc_auc_score(TRUTH, SCORES, average=None))
    show("average precision", metrics.average_precision_score(TRUTH, SCORES, average=None))
    show("macro auc", metrics.roc_auc_score(TRUTH, SCORES))
    show("macro average precision", metrics.average_precision_score(TRUTH, SCORES))
    show("macro f1", metrics.f1_score(TRUTH, predicted, average="macro"))
    show("all labels right", metrics.accuracy_score(TRUTH, predicted))


regression()
labels()
