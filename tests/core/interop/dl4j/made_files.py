"""Writes models as Deeplearning4j 1.0.0-M2 does, and what its training makes of them, computed in float64.
For one model that Deeplearning4j itself trained, writes what the same batches give in float64.

Nothing here comes from muster: the layout of the files and the arithmetic follow Deeplearning4j's sources
(ModelSerializer, ComputationGraph.init, BaseMultiLayerUpdater, ParallelWrapper.fit). Run it in this folder:

    python made_files.py files
"""
import io
import json
import struct
import sys
import zipfile

import numpy as np

KERNEL = 3


# Files

def text(value):
    return struct.pack(">H", len(value)) + value.encode()


def row(values):
    """A row vector [1, n] as Nd4j.write writes it."""
    shape = [2, 1, len(values), 1, 1, 8192, 1, ord("c")]
    return (text("MIXED_DATA_TYPES") + struct.pack(">q", len(shape)) + text("LONG") +
            struct.pack(f">{len(shape)}q", *shape) + text("MIXED_DATA_TYPES") +
            struct.pack(">q", len(values)) + text("FLOAT") + np.asarray(values, ">f4").tobytes())


def write(path, configuration, parameters, state, arrays):
    with zipfile.ZipFile(path + ".zip", "w", zipfile.ZIP_DEFLATED) as file:
        def add(name, data):
            file.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
        add("configuration.json", json.dumps(configuration, indent=2))
        add("coefficients.bin", row(parameters))
        if state is not None:
            add("updaterState.bin", row(state))
    with zipfile.ZipFile(path + ".npz", "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in arrays.items():
            data = io.BytesIO()
            np.save(data, np.ascontiguousarray(array, np.float32))
            file.writestr(zipfile.ZipInfo(name + ".npy", (2026, 1, 1, 0, 0, 0)), data.getvalue(),
                          zipfile.ZIP_DEFLATED)


def classed(package, name, **more):
    return {"@class": package + name, **more}


def layer(name, kind, updater, **more):
    return classed("org.deeplearning4j.nn.conf.layers.", kind, biasInit=0.0, biasUpdater=None,
                   constraints=None, gainInit=1.0, gradientNormalization="None",
                   gradientNormalizationThreshold=1.0, idropout=None, iupdater=updater, layerName=name,
                   regularization=[], regularizationBias=[], timeDistributedFormat=None,
                   weightInitFn=classed("org.deeplearning4j.nn.weights.", "WeightInitXavier"),
                   weightNoise=None, **more)


def activation(name):
    more = {"max": None, "negativeSlope": None, "threshold": None} if name == "ReLU" else {}
    return classed("org.nd4j.linalg.activations.impl.", "Activation" + name, **more)


def conf(of, variables):
    return {"cacheMode": "NONE", "dataType": "FLOAT", "epochCount": 0, "iterationCount": 0, "layer": of,
            "maxNumLineSearchIterations": 5, "miniBatch": True, "minimize": True,
            "optimizationAlgo": "STOCHASTIC_GRADIENT_DESCENT", "seed": 7, "stepFunction": None,
            "variables": variables}


COMMON = {"backpropType": "Standard", "cacheMode": "NONE", "dataType": "FLOAT", "epochCount": 0,
          "inferenceWorkspaceMode": "ENABLED", "iterationCount": 0, "tbpttBackLength": 20,
          "tbpttFwdLength": 20, "trainingWorkspaceMode": "ENABLED", "validateOutputLayerConfig": True}


def dense(name, kind, updater, n_in, n_out, function):
    more = {"hasLayerNorm": False} if kind == "DenseLayer" else {
        "lossFn": classed("org.nd4j.linalg.lossfunctions.impl.", "LossMCXENT", softmaxClipEps=1e-10)}
    return layer(name, kind, updater, activationFn=activation(function), hasBias=True, nin=n_in, nout=n_out,
                 **more)


def convolution(name, updater, n_in, n_out, function):
    return layer(name, "ConvolutionLayer", updater, activationFn=activation(function), hasBias=True, nin=n_in,
                 nout=n_out, kernelSize=[KERNEL, KERNEL], stride=[1, 1], padding=[1, 1], dilation=[1, 1],
                 convolutionMode="Truncate", cnn2dDataFormat="NCHW", cudnnAllowFallback=True,
                 cudnnAlgoMode="PREFER_FASTEST", cudnnBwdDataAlgo=None, cudnnBwdFilterAlgo=None,
                 cudnnFwdAlgo=None)


# Networks: values, and gradients of the mean loss over a batch

def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def windows(x):
    """[N, C, H, W] -> [N, H, W, C, K, K], with a border of one zero."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    seen = np.lib.stride_tricks.sliding_window_view(padded, (KERNEL, KERNEL), axis=(2, 3))
    return seen.transpose(0, 2, 3, 1, 4, 5)


def convolve(x, w, b):
    return np.einsum("nhwckl,ockl->nohw", windows(x), w) + b[:, None, None]


def convolve_back(x, w, d):
    """Gradients with respect to x, w and b."""
    dx = np.einsum("nhwokl,ockl->nchw", windows(d), w[:, :, ::-1, ::-1])
    return dx, np.einsum("nhwckl,nohw->ockl", windows(x), d), d.sum((0, 2, 3))


def residual(p, x, y=None):
    """layer0 -> layer1 -> layer2, added to layer0, ReLU, dense output."""
    z0 = convolve(x, p["0_W"], p["0_b"])
    a0 = np.maximum(z0, 0)
    z1 = convolve(a0, p["1_W"], p["1_b"])
    a1 = np.tanh(z1)
    z2 = convolve(a1, p["2_W"], p["2_b"])
    s = z2 + a0
    r = np.maximum(s, 0)
    flat = r.reshape(len(x), -1)
    q = softmax(flat @ p["3_W"] + p["3_b"])
    if y is None:
        return q
    g = {}
    d = (q - y) / len(x)
    g["3_W"], g["3_b"] = flat.T @ d, d.sum(0)
    ds = (d @ p["3_W"].T).reshape(r.shape) * (s > 0)
    da1, g["2_W"], g["2_b"] = convolve_back(a1, p["2_W"], ds)
    da0, g["1_W"], g["1_b"] = convolve_back(a0, p["1_W"], da1 * (1 - a1 * a1))
    _, g["0_W"], g["0_b"] = convolve_back(x, p["0_W"], (da0 + ds) * (z0 > 0))
    return g


def perceptron(p, x, y=None):
    a = np.tanh(x @ p["0_W"] + p["0_b"])
    q = softmax(a @ p["1_W"] + p["1_b"])
    if y is None:
        return q
    d = (q - y) / len(x)
    da = d @ p["1_W"].T * (1 - a * a)
    return {"0_W": x.T @ da, "0_b": da.sum(0), "1_W": a.T @ d, "1_b": d.sum(0)}


# Updaters: change p and s by gradients

def nesterovs(p, s, g, rate=0.05, momentum=0.9):
    for k in g:
        before = s[k]
        s[k] = momentum * before - rate * g[k]
        p[k] = p[k] - (momentum * before - (1 + momentum) * s[k])


def adagrad(p, s, g, rate=0.05, epsilon=1e-6):
    for k in g:
        s[k] = s[k] + g[k] ** 2
        p[k] = p[k] - rate * g[k] / (np.sqrt(s[k]) + epsilon)


# Training

def fit(network, update, p, s, batches):
    p, s = dict(p), dict(s)
    for x, y in batches:
        update(p, s, network(p, x, y))
    return p, s


def mean(all_of, weights):
    return {k: sum(w * one[k] for w, one in zip(weights, all_of)) / sum(weights) for k in all_of[0]}


def wrapper(network, update, p, s, batches, workers, frequency):
    """ParallelWrapper.fit: an iteration is a batch for each worker; after `frequency` of them the workers that
    had a batch in this one are averaged. The user's model is worker 0's."""
    replicas = [(dict(p), dict(s)) for _ in range(workers)]
    for i in range(0, len(batches), workers):
        now = batches[i:i + workers]
        for (rp, rs), (x, y) in zip(replicas, now):
            update(rp, rs, network(rp, x, y))
        if (i // workers + 1) % frequency == 0:
            ones = [1] * len(now)
            for part in (0, 1):
                averaged = mean([r[part] for r in replicas[:len(now)]], ones)
                for r in replicas[:len(now)]:
                    r[part].update(averaged)
    return replicas[0]


def wrapper_merged(network, update, p, s, batches, workers, frequency):
    """The same, but nothing is lost: the last round is merged, too, each worker weighted by its examples."""
    for begin in range(0, len(batches), workers * frequency):
        now = batches[begin:begin + workers * frequency]
        dealt = [now[w::workers] for w in range(min(workers, len(now)))]
        trained = [fit(network, update, p, s, own) for own in dealt]
        weights = [sum(len(x) for x, _ in own) for own in dealt]
        p, s = (mean([t[part] for t in trained], weights) for part in (0, 1))
    return p, s


def flat(values, order, bias_first):
    """Dense weights in column order before the bias, convolutions after it."""
    parts = []
    for k in order:
        w, b = values[k + "_W"], values[k + "_b"]
        parts += [b, w.ravel()] if k in bias_first else [w.ravel(order="F"), b]
    return np.concatenate(parts)


def rounded(values):
    return {k: v.astype(np.float32).astype(np.float64) for k, v in values.items()}


def arrays_of(network, p, after, state, batches, x):
    arrays = {"in": x, "out": network(p, x), "out_after": network(after, x), "after_updater": [state]}
    for i, (bx, by) in enumerate(batches):
        arrays[f"batch{i}_x"], arrays[f"batch{i}_y"] = bx, by
    for k in p:
        arrays["param_" + k], arrays["after_param_" + k] = p[k], after[k]
    return arrays


def batch(random, shape, classes):
    x = random.standard_normal(shape).astype(np.float32).astype(np.float64)
    return x, np.eye(classes)[random.integers(classes, size=shape[0])]


def draw(random, shapes):
    p = {}
    for name, shape in shapes.items():
        inputs = shape[0] if len(shape) == 2 else int(np.prod(shape[1:])) if len(shape) > 1 else 1
        p[name] = random.standard_normal(shape) * (0.7 / np.sqrt(inputs) if len(shape) > 1 else 0.1)
    return rounded(p)


def make_residual(folder):
    random = np.random.default_rng(46)
    p = draw(random, {"0_W": (4, 2, 3, 3), "0_b": (4,), "1_W": (5, 4, 3, 3), "1_b": (5,), "2_W": (4, 5, 3, 3),
                      "2_b": (4,), "3_W": (4 * 5 * 6, 3), "3_b": (3,)})
    batches = [batch(random, (8, 2, 5, 6), 3) for _ in range(6)]
    s = {k: np.zeros_like(v) for k, v in p.items()}
    p, s = (rounded(part) for part in fit(residual, nesterovs, p, s, batches[:3]))
    after, after_s = fit(residual, nesterovs, p, s, batches[3:])
    updater = classed("org.nd4j.linalg.learning.config.", "Nesterovs", learningRate=0.05, momentum=0.9)
    to_rows = classed("org.deeplearning4j.nn.conf.preprocessor.", "CnnToFeedForwardPreProcessor", format="NCHW",
                      inputHeight=5, inputWidth=6, numChannels=4)
    relu = classed("org.deeplearning4j.nn.conf.layers.", "ActivationLayer", activationFn=activation("ReLU"),
                   constraints=None, idropout=None, layerName="relu")

    def vertex(of, variables, preprocessor=None):
        return classed("org.deeplearning4j.nn.conf.graph.", "LayerVertex", layerConf=conf(of, variables),
                       outputVertex=False, preProcessor=preprocessor)

    # As a program adds them; the parameters are in topological order.
    vertices = {
        "layer0": vertex(convolution("layer0", updater, 2, 4, "ReLU"), ["W", "b"]),
        "sum": classed("org.deeplearning4j.nn.conf.graph.", "ElementWiseVertex", op="Add"),
        "layer3": vertex(dense("layer3", "OutputLayer", updater, 120, 3, "Softmax"), ["W", "b"], to_rows),
        "relu": vertex(relu, []),
        "layer2": vertex(convolution("layer2", updater, 5, 4, "Identity"), ["W", "b"]),
        "layer1": vertex(convolution("layer1", updater, 4, 5, "TanH"), ["W", "b"])}
    graph = {**COMMON, "iterationCount": 3, "defaultConfiguration": conf(None, []), "networkInputs": ["in"],
             "networkOutputs": ["layer3"], "topologicalOrder": [0, 1, 6, 5, 2, 4, 3],
             "topologicalOrderStr": ["in", "layer0", "layer1", "layer2", "sum", "relu", "layer3"],
             "vertexInputs": {"layer0": ["in"], "sum": ["layer2", "layer0"], "layer3": ["relu"],
                              "relu": ["sum"], "layer2": ["layer1"], "layer1": ["layer0"]},
             "vertices": vertices}
    order, convolutions = "0123", "012"
    write(folder + "/made_residual", graph, flat(p, order, convolutions), flat(s, order, convolutions),
          arrays_of(residual, p, after, flat(after_s, order, convolutions), batches[3:],
                    batch(random, (4, 2, 5, 6), 3)[0]))


def make_wrappers(folder):
    """14 batches for 3 workers: the last iteration has batches for two of them."""
    random = np.random.default_rng(1646)
    p = draw(random, {"0_W": (6, 7), "0_b": (7,), "1_W": (7, 3), "1_b": (3,)})
    batches = [batch(random, (9, 6), 3) for _ in range(17)]
    s = {k: np.full_like(v, 1e-6) for k, v in p.items()}
    p, s = (rounded(part) for part in fit(perceptron, adagrad, p, s, batches[:3]))
    updater = classed("org.nd4j.linalg.learning.config.", "AdaGrad", epsilon=1e-6, learningRate=0.05)
    chain = {**COMMON, "iterationCount": 3, "inputPreProcessors": {},
             "confs": [conf(dense("layer0", "DenseLayer", updater, 6, 7, "TanH"), ["W", "b"]),
                       conf(dense("layer1", "OutputLayer", updater, 7, 3, "Softmax"), ["W", "b"])]}
    x = batch(random, (4, 6), 3)[0]
    for count in (12, 14):
        for frequency in (2, 5):
            name = f"/made_wrapper_3x{frequency}_adagrad_{count}"
            training = (perceptron, adagrad, p, s, batches[3:3 + count], 3, frequency)
            after, after_s = wrapper(*training)
            arrays = arrays_of(perceptron, p, after, flat(after_s, "01", ""), batches[3:3 + count], x)
            merged, _ = wrapper_merged(*training)
            arrays.update({"merged_param_" + k: v for k, v in merged.items()})
            write(folder + name, chain, flat(p, "01", ""), flat(s, "01", ""), arrays)


# A file of Deeplearning4j's own in float64

def read_row(data):
    """The values of a row vector, whose shape comes before them."""
    for _ in range(2):
        (length,) = struct.unpack(">H", data[:2])
        (count,) = struct.unpack(">q", data[2 + length:10 + length])
        (named,) = struct.unpack(">H", data[10 + length:12 + length])
        kind = data[12 + length:12 + length + named].decode()
        data = data[12 + length + named:]
        if kind == "LONG":
            data = data[8 * count:]
    return np.frombuffer(data, ">f4").astype(np.float64)


def split(values, shapes):
    """Matrices are in column order."""
    parts, at = {}, 0
    for name, shape in shapes.items():
        count = int(np.prod(shape))
        parts[name] = values[at:at + count].reshape(shape, order="F")
        at += count
    return parts


def recorded(folder, name, shapes):
    with zipfile.ZipFile(f"{folder}/{name}.zip") as file:
        p = split(read_row(file.read("coefficients.bin")), shapes)
        state = read_row(file.read("updaterState.bin"))
    arrays = np.load(f"{folder}/{name}.npz")
    return p, state, [tuple(arrays[f"batch{i}_{end}"].astype(np.float64) for end in "xy") for i in range(3)]


def normalised(p, x, y, epsilon=1e-5):
    """tanh, batch normalisation, leaky ReLU, softmax. @return gradients, mean and variance of the batch."""
    a = np.tanh(x @ p["0_W"] + p["0_b"])
    mean_of, variance = a.mean(0), a.var(0)
    inverse = 1 / np.sqrt(variance + epsilon)
    unit = (a - mean_of) * inverse
    h = unit * p["1_gamma"] + p["1_beta"]
    z = h @ p["2_W"] + p["2_b"]
    b = np.where(z > 0, z, 0.01 * z)
    d = (softmax(b @ p["3_W"] + p["3_b"]) - y) / len(x)
    dz = d @ p["3_W"].T * np.where(z > 0, 1, 0.01)
    dh = dz @ p["2_W"].T
    du = dh * p["1_gamma"]
    da = inverse * (du - du.mean(0) - unit * (du * unit).mean(0)) * (1 - a * a)
    return {"0_W": x.T @ da, "0_b": da.sum(0), "1_gamma": (dh * unit).sum(0), "1_beta": dh.sum(0),
            "2_W": h.T @ dz, "2_b": dz.sum(0), "3_W": b.T @ d, "3_b": d.sum(0)}, mean_of, variance


def exact_rmsprop(folder, rate=0.01, decay=0.95, epsilon=1e-8, moving=0.9):
    name = "mlp_batchnorm_rmsprop"
    shapes = {"0_W": (7, 12), "0_b": (12,), "1_gamma": (12,), "1_beta": (12,), "1_mean": (12,),
              "1_log10stdev": (12,), "2_W": (12, 9), "2_b": (9,), "3_W": (9, 3), "3_b": (3,)}
    p, state, batches = recorded(folder, name, shapes)
    s = split(state, {k: v for k, v in shapes.items() if k not in ("1_mean", "1_log10stdev")})
    for x, y in batches:
        g, mean_of, variance = normalised(p, x, y)
        for k in g:
            s[k] = decay * s[k] + (1 - decay) * g[k] ** 2
            p[k] = p[k] - rate * g[k] / (np.sqrt(s[k]) + epsilon)
        p["1_mean"] = moving * p["1_mean"] + (1 - moving) * mean_of
        before = 10 ** (2 * p["1_log10stdev"])
        p["1_log10stdev"] = 0.5 * np.log10(moving * before + (1 - moving) * variance)
    return name, p


def write_exact(folder, name, p):
    with zipfile.ZipFile(f"{folder}/{name}.exact.npz", "w", zipfile.ZIP_DEFLATED) as file:
        for k, values in p.items():
            data = io.BytesIO()
            np.save(data, np.ascontiguousarray(values, np.float32))
            file.writestr(zipfile.ZipInfo(f"exact_param_{k}.npy", (2026, 1, 1, 0, 0, 0)), data.getvalue(),
                          zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    make_residual(sys.argv[1])
    make_wrappers(sys.argv[1])
    write_exact(sys.argv[1], *exact_rmsprop(sys.argv[1]))
