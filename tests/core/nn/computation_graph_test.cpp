#include "muster/core/nn/computation_graph.h"

#include <fstream>

#include "muster/core/eval/evaluation.h"
#include "muster/core/io/model_file.h"
#include "tests/core/nn/test.h"
#include "tests/support/environment.h"
#include "tests/support/network_probe.h"

using namespace muster;

namespace {

const Shape kImage{2, 8, 7};
const std::string kNoDot =
    "graph picture: Graphviz's program dot, which draws it, is not installed; toDot() needs no program";

Conv2d conv(std::int64_t channels, Activation activation = Activation::Tanh) {
  return {.outChannels = channels, .kernel = {3, 3}, .padding = {1, 1}, .activation = activation};
}

/// Two residual blocks, one after the other, and a classifier.
ComputationGraphConfiguration residual() {
  ComputationGraphConfiguration graph{.seed = 5,
                                      .updater = Sgd{.learningRate = 0.1},
                                      .l2 = 1e-3,
                                      .inputs = {{.name = "image", .shape = kImage}}};
  auto x = graph.add("stem", conv(4), {"image"});
  for (const std::string block : {"block1", "block2"}) {
    const auto y = graph.add(block + ".conv2", conv(4, Activation::Identity),
                             {graph.add(block + ".conv1", conv(4), {x})});
    x = graph.add(block + ".sum", Combine{.activation = Activation::Tanh}, {y, x});
  }
  graph.addOutput(graph.add("output", Output{.classes = 3}, {graph.add("pool", MaxPool2d{}, {x})}));
  return graph;
}

/// Two inputs, two outputs with their own losses, an output that another vertex also reads, and a value that
/// a vertex reads twice.
ComputationGraphConfiguration twoTasks() {
  ComputationGraphConfiguration graph{
      .seed = 9,
      .updater = Nesterovs{.learningRate = 0.05},
      .inputs = {{.name = "image", .shape = kImage}, {.name = "context", .shape = {5}}}};
  const auto seen = graph.add("seen", Dense{.units = 6, .activation = Activation::Tanh}, {"image"});
  const auto known = graph.add("known", Dense{.units = 4, .activation = Activation::Tanh}, {"context"});
  const auto both = graph.add("both", Merge{}, {seen, known});
  const auto twice = graph.add("twice", Combine{.combination = Combination::Product}, {both, both});
  const auto doubled = graph.add("doubled", Combine{.combination = Combination::Add}, {twice, twice, both});
  graph.addOutput(graph.add("digit", Output{.classes = 3}, {doubled}));
  graph.addOutput(
      graph.add("size",
                Output{.classes = 2, .loss = Loss::MeanSquaredError, .activation = Activation::Identity},
                {both}),
      0.3);
  return graph;
}

Batch taskBatch(std::int64_t examples, std::uint64_t seed) {
  Batch batch = test::classBatch(kImage, examples, 3, seed);
  batch.features.front().name = "image";
  batch.labels.front().name = "digit";
  const Batch other = test::targetBatch({5}, examples, 2, seed + 1);
  batch.features.push_back({"context", other.features.front().value});
  batch.labels.push_back({"size", other.labels.front().value});
  return batch;
}

std::string problemOf(ComputationGraphConfiguration graph) {
  return test::thrown<InvalidArgument>([&] { ComputationGraph model(std::move(graph)); });
}

}  // namespace

TEST_CASE("graphs pass the gradient check: residual blocks, several inputs and outputs, shared values") {
  ComputationGraph blocks(residual());
  blocks.init();
  test::checkGradientsOf(blocks, test::classBatch(kImage, 6, 3, 4));
  ComputationGraph tasks(twoTasks());
  tasks.init();
  CHECK(test::checkGradientsOf(tasks, taskBatch(6, 4)) > 100);
}

TEST_CASE("the score is the sum of the outputs' losses times their weights") {
  const Batch batch = taskBatch(7, 1);
  const auto scoreWith = [&](double digit, double size) {
    auto graph = twoTasks();
    graph.outputs[0].weight = digit;
    graph.outputs[1].weight = size;
    ComputationGraph model(graph);
    model.init();
    return model.score(batch);
  };
  CHECK(scoreWith(2, 0.5) == doctest::Approx(2 * scoreWith(1, 0) + 0.5 * scoreWith(0, 1)).epsilon(1e-6));
}

TEST_CASE("a step's weight is the largest normaliser of its outputs") {
  ComputationGraph model(twoTasks());
  model.init();
  Batch batch = taskBatch(4, 1);
  const auto weight = [&] { return model.gradient(batch).wait().weight; };
  CHECK(weight() == 4);
  batch.masks = {{"digit", Tensor::zeros({4})}};
  CHECK(weight() == 4);
  batch.masks.push_back({"size", Tensor::of({1, 0, 0.5f, 0}, {4})});
  CHECK(weight() == 1.5);
  batch.masks.front().value = Tensor::of({1, 1, 0, 1}, {4});
  CHECK(weight() == 3);
}

TEST_CASE(
    "an evaluation counts the first output against its own labels and mask, in any order of the labels") {
  ComputationGraph model(twoTasks());
  model.init();
  Batch batch = taskBatch(9, 2);
  Evaluation expected(3);
  expected.add(model.outputs(batch).front(), batch.labels.front().value, {});
  const auto evaluated = [&] {
    test::ListIterator data({batch});
    return model.evaluate(data);
  };
  CHECK(evaluated() == expected);
  std::ranges::reverse(batch.labels);
  CHECK(evaluated() == expected);
  batch.masks = {{"size", Tensor::zeros({9})}};
  CHECK(evaluated() == expected);
  batch.masks.push_back({"digit", Tensor::of({0, 1, 0, 0, 0, 0, 0, 1, 0}, {9})});
  CHECK(evaluated().examples() == 2);
  batch.labels.back().name = "number";
  CHECK(test::thrown<InvalidArgument>(evaluated) ==
        "evaluate: batch 1: network: the batch has no labels called digit; it has size, number");
}

TEST_CASE("the order of the vertices does not matter") {
  auto graph = residual();
  ComputationGraph straight(graph);
  std::ranges::reverse(graph.vertices);
  ComputationGraph reversed(graph);
  straight.init();
  reversed.init();
  const Batch batch = test::classBatch(kImage, 5, 3, 8);
  CHECK(test::sameBits(straight.outputs(batch)[0], reversed.outputs(batch)[0]));
}

TEST_CASE("activations share memory if their lifetimes do not overlap") {
  ComputationGraphConfiguration deep{.inputs = {{.name = "x", .shape = {1000}}}};
  std::string x = "x";
  for (int i = 0; i < 20; ++i) x = deep.add(fmt::format("scale{}", i), Scale{.factor = 1.1}, {x});
  deep.addOutput(x);
  ComputationGraph model(deep);
  model.init();
  model.output(Tensor::zeros({8, 1000}));
  CHECK(test::activationBytes(model) <= 2 * 8 * 1000 * sizeof(float));
}

TEST_CASE("frozen layers do not change, and learning rates differ by layer") {
  auto graph = residual();
  for (auto& vertex : graph.vertices) {
    if (vertex.name == "stem") vertex.layer = vertex.layer.frozen();
    if (vertex.name == "output") vertex.layer = vertex.layer.learningRate(0);
    if (vertex.name == "block1.conv1") vertex.layer = vertex.layer.learningRate(0.5);
  }
  ComputationGraph model(graph), whole(residual());
  model.init();
  whole.init();
  const auto before = model.clone();
  const Batch batch = test::classBatch(kImage, 6, 3, 4);
  model.step(batch);
  whole.step(batch);
  const auto move = [&](Model& m, const char* name) {
    const auto now = test::floatsOf(m.block(BlockKind::Parameters).segment(name));
    return now[5] - test::floatsOf(before->block(BlockKind::Parameters).segment(name))[5];
  };
  CHECK(move(model, "stem.weight") == 0);
  CHECK(move(model, "output.weight") == 0);
  CHECK(move(whole, "block1.conv1.weight") != 0);
  CHECK(move(model, "block1.conv1.weight") ==
        doctest::Approx(0.5 * move(whole, "block1.conv1.weight")).epsilon(1e-3));
  CHECK_CONTAINS(model.summary(), "of these frozen: 76");
  CHECK_REFUSED(Layer(Dense{}).learningRate(-1),
                "layer dense: the learning rate's scale must be finite and not negative, got -1");
}

TEST_CASE("a saved graph has the same configuration, settings, state and outputs") {
  test::TemporaryDirectory directory;
  const auto path = directory / "graph.safetensors";
  auto graph = twoTasks();
  graph.vertices[0].layer = graph.vertices[0].layer.frozen();
  graph.vertices[1].layer = graph.vertices[1].layer.learningRate(0.25);
  ComputationGraph model(graph);
  model.init();
  for (std::int64_t i = 0; i < 3; ++i) {
    Batch batch = taskBatch(6, 20 + static_cast<std::uint64_t>(i));
    batch.stamp.iteration = i;
    model.step(batch);
  }
  test::checkComesBack(model, taskBatch(5, 3));
  model.save(path);
  CHECK(test::thrown<FileError>([&] { MultiLayerNetwork::load(path); }) ==
        path.string() + ": holds a graph; ComputationGraph::load reads it");

  ComputationGraph resumed(graph);
  loadState(resumed, path);
  CHECK(test::stateBits(resumed) == test::stateBits(model));
  graph.outputs[1].weight = 1;
  ComputationGraph other(graph);
  CHECK_CONTAINS(test::thrown<FileError>([&] { loadState(other, path); }),
                 "output has weight 0.3 there, and 1.0 here");
}

TEST_CASE("a graph that cannot be drawn is refused with the reason") {
  const test::TemporaryDirectory directory;
  const auto path = directory / "graph.svg";
  const test::Environment environment("PATH", directory.path().string());
  CHECK_REFUSED(drawSvg(residual(), path), kNoDot);
  const auto dot = directory / "dot";
  std::ofstream(dot) << "#!/bin/sh\nexit $STATUS\n";
  if (const auto said = test::thrown<Error>([&] { drawSvg(residual(), path); });
      said != kNoDot)  // as emulators say
    CHECK(said == "graph picture: Graphviz's program dot cannot be started: Permission denied");
  std::filesystem::permissions(dot, std::filesystem::perms::owner_all);
  for (const auto& [status, what] :
       {std::pair<std::string, std::string>{"127", kNoDot},
        {"1", "graph picture: Graphviz's program dot could not draw the graph"}}) {
    const test::Environment ends("STATUS", status);
    CHECK(test::thrown<Error>([&] { drawSvg(residual(), path); }) == what);
  }
}

TEST_CASE("the table and the drawing show a vertex's inputs and shape") {
  ComputationGraph model(residual());
  const auto text = model.summary();
  CHECK_CONTAINS(text, "block2.sum");
  CHECK_CONTAINS(text, "block2.conv2, block1.sum");
  auto undecided = residual();
  undecided.inputs.front().shape = {};
  const auto open = ComputationGraph(undecided).summary();
  CHECK_CONTAINS(open, "block2.conv2, block1.sum");
  CHECK_CONTAINS(open, "combine");
  CHECK(open.ends_with("the first batch gives the shape of image\n"));
  const auto dot = residual().toDot();
  CHECK_CONTAINS(dot, "\"block1.sum\" [label=\"block1.sum\\ncombine\\n[4, 8, 7]\"];");
  CHECK_CONTAINS(dot, "\"stem\" -> \"block1.sum\";");
  test::TemporaryDirectory directory;
  const auto path = directory / "graph.svg";
  const auto problem = test::thrown<InvalidArgument>([&] { drawSvg(residual(), path); });
  if (problem.empty()) {
    const auto svg = test::readFile(path);
    CHECK_CONTAINS(svg, "block2.sum");
    CHECK_CONTAINS(svg, "</svg>");
  } else {
    CHECK(problem == kNoDot);
  }
}

TEST_CASE("names of vertices add nothing to a drawing") {
  const std::string input = R"(in"]; "more" [label=")", output = R"($(touch made); `touch made` \)";
  ComputationGraphConfiguration graph{.inputs = {{input, {3}}}};
  graph.add(output, Output{.classes = 2}, {input});
  graph.addOutput(output);
  const std::string quoted = R"("in\"]; \"more\" [label=\"")", after = R"("$(touch made); `touch made` \\")";
  CHECK(graph.toDot() ==
        "digraph network {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\"];\n  " + quoted +
            R"( [label="in\"]; \"more\" [label=\"\n[3]", style=rounded];)" + "\n  " + after +
            R"( [label="$(touch made); `touch made` \\\noutput\n[2]"];)" + "\n  " + after +
            " [peripheries=2];\n  " + quoted + " -> " + after + ";\n}\n");
}

TEST_CASE("invalid options are refused by name") {
  CHECK(problemOf({}) == "graph: it has no inputs");
  const auto refused = [](const auto& change, const std::string& sentence) {
    auto graph = residual();
    change(graph);
    CHECK(problemOf(graph) == sentence);
  };
  refused([](auto& graph) { graph.vertices[1].inputs = {"block2.sum"}; },
          "graph: there is a cycle: block1.conv1 reads block2.sum reads block2.conv2 reads block2.conv1 "
          "reads block1.sum reads block1.conv2 reads block1.conv1");
  refused([](auto& graph) { graph.vertices[1].inputs = {"stam"}; },
          "graph: vertex block1.conv1 reads stam, which is neither an input nor a vertex");
  refused([](auto& graph) { graph.vertices.back().name = "stem"; },
          "graph: two inputs or vertices are called stem");
  refused([](auto& graph) { graph.add("loose", conv(3), {"stem"}); },
          "graph: vertex loose leads to no output");
  refused([](auto& graph) { graph.addOutput("nowhere"); }, "graph: the output nowhere is not a vertex");
  refused([](auto& graph) { graph.addOutput("output"); }, "graph: output is an output twice");
  refused([](auto& graph) { graph.inputs.push_back({.name = "spare"}); },
          "graph: no vertex reads the input spare");
  refused(
      [](auto& graph) {
        graph.add("wide", conv(9), {"stem"});
        graph.add("bad", Combine{}, {"wide", "stem"});
        graph.outputs = {{.name = "bad"}, {.name = "output"}};
      },
      "bad (combine) of wide [9, 8, 7] and stem [4, 8, 7]: combine: expected inputs of one shape, got [9, 8, "
      "7] and [4, 8, 7]");
  refused(
      [](auto& graph) {
        graph.add("early", Output{.classes = 3}, {"stem"});
        graph.addOutput(graph.add("late", Dense{.units = 2}, {"early"}));
      },
      "graph: vertex early (output) has a loss, but is not an output of the graph; addOutput() makes it one, "
      "and a Dense has no loss");
  refused(
      [](auto& graph) {
        graph.addOutput(graph.add("early", Output{.classes = 3}, {"stem"}));
        graph.addOutput(graph.add("late", Dense{.units = 2}, {"early"}));
      },
      "");
  refused([](auto& graph) { graph.add("v\xFFx", conv(3), {"stem"}); },
          "network: the name of a vertex is not UTF-8, as names in files are");
  refused(
      [](auto& graph) {
        graph.add("two", conv(3), {"stem", "image"});
        graph.addOutput("two");
      },
      "graph: vertex two (conv2d) takes one input, got 2; a Merge or Combine makes one of several");
  auto graph = residual();
  for (const double weight : {-1.0, double{test::kInfinity}, double{test::kNan}}) {
    graph.outputs[0].weight = weight;
    CHECK(problemOf(graph) ==
          fmt::format("graph: the weight of output output must be finite and not negative, got {}", weight));
  }
  graph = residual();
  graph.vertices[0].inputs = {};
  CHECK(problemOf(graph).ends_with("reads nothing"));
  graph = residual();
  graph.inputs.front().name = "im\nage";
  CHECK(problemOf(graph).starts_with("network: the name of an input holds a control character"));
  CHECK_REFUSED(MultiLayerNetwork({.inputShape = kImage, .layers = {Combine{}}}),
                "network: layer 0 (combine) takes several inputs, which a chain does not have; a "
                "ComputationGraph does");

  ComputationGraph model(twoTasks());
  model.init();
  Batch batch = taskBatch(4, 1);
  batch.features.back().value = Tensor::zeros({3, 5});
  CHECK_REFUSED(model.score(batch), "network: the batch has 3 examples of context, but 4 of image");
  batch = taskBatch(4, 1);
  batch.masks = {{"size", Tensor::zeros({3})}};
  CHECK_REFUSED(model.score(batch),
                "network: output size takes a mask float32 [4], a weight for each example, but its mask, "
                "called size, is float32 [3] on cpu");
  batch.masks.clear();
  batch.labels.front().value.data<std::int64_t>()[2] = 3;
  CHECK(test::thrown<InvalidArgument>([&] { model.gradient(batch); }).starts_with("network: output digit: "));
  CHECK(test::thrown<InvalidArgument>([&] {
          Tensor out;
          model.forward(batch.features.front().value, out, {});
        }) == "network: forward() is for networks with one input and one output, this one has 2 and 2");
}
