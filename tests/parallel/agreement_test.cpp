#include "muster/parallel/agreement.h"

#include "muster/core/listeners/early_stopping.h"
#include "muster/core/listeners/evaluation_listener.h"
#include "muster/parallel/training/internals.h"
#include "tests/parallel/nodes/on_links.h"
#include "tests/support/one_block_model.h"
#include "tests/support/texts.h"
#include "tests/support/toy_data.h"
#include "tests/support/toy_model.h"

using namespace muster;
using namespace muster::test;

namespace {

struct Named final : NodeListener {
  explicit Named(std::string n) : name(std::move(n)) {}
  std::string describe() const override { return name; }
  const std::string name;
};

/// A model whose description and layers the test chooses.
struct Described final : OneBlockModel {
  /// @param layer  its name. @param more  size of a block without layers.
  explicit Described(std::string configuration, const std::string& layer = "w", std::int64_t more = 1)
      : text(std::move(configuration)) {
    const auto table = std::make_shared<SegmentTable>(), other = std::make_shared<SegmentTable>();
    table->add({.name = layer, .shape = {1}});
    other->add({.name = "more", .shape = {more}});
    for (StateBlock& block : blocks_) block.segments = table;
    blocks_.push_back(StateBlock::zeros("more", BlockKind::Statistics, MergeRule::Average, other));
    blocks_.back().segments = nullptr;
  }
  std::string configurationText() const override { return text; }

  const std::string text;
};

std::shared_ptr<const muster::detail::Internals> ofVersion(std::string version) {
  return std::make_shared<muster::detail::Internals>(
      muster::detail::Internals{.version = std::move(version)});
}

/// What one node has; tests change it.
struct Node {
  explicit Node(const ToyOptions& toy = {}) : model(toy) {}
  explicit Node(Model& own) : compared(own) {}
  ToyModel model;
  Model& compared = model;
  ToyIterator data = ToyIterator::ofValues({1, 2, 3});
  Batch first;
  ParallelOptions options{
      .workers = 2, .strategy = Averaging{.frequency = 4}, .internals = ofVersion("1.2.3")};

  Agreement agreement{.options = options, .model = compared, .data = data, .epochs = 5};
};

/// What two nodes say whose models differ.
std::string difference(Described first, Described second) {
  return onLinks(2, [&](NodeLink& link) {
    requireAgreement(link, Node(link.node() == 0 ? first : second).agreement);
  })[0];
}

/// Compares two nodes, of which the test changes the second. @return what both throw, which must be the same.
/// @param toy  the second node's model.
std::string difference(const std::function<void(Node&)>& change, const ToyOptions& toy = {}) {
  const auto problems = onLinks(2, [&](NodeLink& link) {
    Node node(link.node() == 1 ? toy : ToyOptions{});
    if (link.node() == 1) change(node);
    requireAgreement(link, node.agreement);
  });
  CHECK(problems[0].substr(0, problems[0].find(';')) == problems[1].substr(0, problems[1].find(';')));
  constexpr std::string_view begin = "nodes: node 0 (virtual0) and node 1 (virtual1) differ in ";
  return problems[0].starts_with(begin) ? problems[0].substr(begin.size()) : problems[0];
}

bool hasLine(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("the version is compared first, then where nodes begin, then the rest; what differs is named") {
  const auto ofAll = [](const std::string& what) { return what + ", which must be the same on all nodes"; };
  const auto here = [&](const std::string& what, const std::string& value) {
    return ofAll(what) + "; on this node: \"" + value + "\"";
  };
  const std::string state = ofAll("the parameters or the state of the model"),
                    begins = ofAll("where the training begins"),
                    load = "; load the same file on all nodes, or initialise the model with the same seed";
  const std::pair<std::string, std::function<void(Node&)>> rows[] = {
      {"", [](Node&) {}},
      {"", [](Node& node) { node.options.listeners.push_back(std::make_shared<Listener>()); }},
      {here("the version of muster", "1.2.3"),
       [](Node& node) {
         node.options.internals = ofVersion("1.2.4");
         node.options.workers = 3;
         node.model.setCounters(1, 0);
       }},
      {begins +
           ": node 0 (virtual0) begins at batch 1 of epoch 1 (iteration 0) with a new model, and node 1 "
           "(virtual1) begins at batch 8 of epoch 1 (iteration 0) with a model that it has trained; load "
           "the same checkpoint on all nodes, or begin a new training on all",
       [](Node& node) {
         node.options.workers = 3;
         node.agreement.nextBatch = 7;
       }},
      {here("workers on each node", "2"), [](Node& node) { node.options.workers = 3; }},
      {here("epochs to train", "5"), [](Node& node) { node.agreement.epochs = 6; }},
      {here("the examples of the data set", "not known"), [](Node& node) { node.data.knownExamples = 5; }},
      {here("the listeners that are called on all nodes", "none"),
       [](Node& node) { node.options.listeners.push_back(std::make_shared<Named>("early stopping")); }},
      {state + load, [](Node& node) { node.model.setParameters({1}); }},
      {state +
           ": node 0 (virtual0) loaded no file, and node 1 (virtual1) loaded its model from "
           "run/model.safetensors" +
           load,
       [](Node& node) {
         node.model.setParameters({1});
         node.model.setLoadedFrom("run/model.safetensors");
       }},
      {ofAll("the first batch"), [](Node& node) {
         node.data.next(node.first);
         node.agreement.first = &node.first;
       }}};
  for (const auto& [problem, change] : rows) CHECK(difference(change) == problem);
  CHECK(difference([](Node& node) { node.model.setCounters(0, 1); }).starts_with(begins));
  // Layers are compared by their shapes, also if padding makes blocks of equal size.
  CHECK(difference([](Node&) {}, {.size = 2}) == ofAll("the layers of the model"));
}

TEST_CASE("models are compared by their descriptions and the names and sizes of their layers") {
  CHECK(difference(Described("a"), Described("a")) == "");
  const auto ends = [](const std::string& problem, const std::string& item) {
    return problem.ends_with(" differ in " + item);
  };
  CHECK(ends(difference(Described("a"), Described("b")),
             "the configuration of the model, which must be the same on all nodes; on this node: \"a\""));
  CHECK(ends(difference(Described("a\n  b"), Described("a\n  c")),  // too long to be shown
             "the configuration of the model, which must be the same on all nodes"));
  CHECK(ends(difference(Described("a", "v"), Described("a", "w")),
             "the layers of the model, which must be the same on all nodes"));
  CHECK(ends(difference(Described("a", "w", 1), Described("a", "w", 100)),
             "the layers of the model, which must be the same on all nodes"));
}

TEST_CASE("of several nodes the one that differs is named; of a long file name the end is told") {
  const std::string file = "/" + std::string(2000, 'x') + "/model.safetensors";
  for (const std::string& problem : onLinks(3, [&](NodeLink& link) {
         Node node;
         if (link.node() == 1) node.model.setParameters({1});
         if (link.node() == 1) node.model.setLoadedFrom(file);
         requireAgreement(link, node.agreement);
       })) {
    CHECK_CONTAINS(problem, "node 0 (virtual0) and node 1 (virtual1) differ in the parameters");
    CHECK_CONTAINS(problem, "x/model.safetensors; load the same file");
  }
}

TEST_CASE("each option of the training and of the strategy is compared") {
  const auto begins = [](const std::string& problem, const std::string& what, const std::string& value) {
    return problem.starts_with(what + ", which must be the same on all nodes; on this node: \"" + value);
  };
  const Updater half = Sgd{.learningRate = 0.5};  // as node 0
  const std::vector<TrainingOptions> others = {
      {.updater = Nesterovs{.learningRate = 0.5, .momentum = 0.5}},
      {.updater = Sgd{.learningRate = 0.25}},
      {.updater = half.withLearningRate(StepSchedule{.initial = 0.5})},
      {.updater = half, .l1 = 0.5},
      {.updater = half, .l2 = 0.5},
      {.updater = half, .weightDecay = 0.5},
      {.updater = half, .clipNorm = 0.5},
      {.updater = half, .clipValue = 0.5},
      {.updater = half, .accumulate = 2}};
  for (const TrainingOptions& training : others) {
    CAPTURE(&training - others.data());
    CHECK(begins(difference([](Node&) {}, {.training = training}), "the training options of the model",
                 "{\"updater\":"));
  }
  for (const auto& rule :
       {Averaging{.frequency = 3}, Averaging{.frequency = 4, .updaterState = UpdaterState::Keep}}) {
    const auto problem = difference([&](Node& node) { node.options.strategy = rule; });
    CHECK(begins(problem, "the strategy", "averaging every 4 iterations (every=4,"));
    CHECK_CONTAINS(problem, "updaterState=average");
  }
}

TEST_CASE("each setting of a listener that is called on all nodes is compared") {
  struct Settings {
    EvaluationOptions evaluation = {};
    EarlyStoppingOptions stopping = {.monitor = Monitor::TrainingScore, .mode = MonitorMode::Min};
    std::optional<std::int64_t> validationExamples = {};
    int evaluations = 1;
  };
  const std::function<void(Settings&)> changes[] = {[](Settings&) {},
                                                    [](Settings& s) { s.evaluation.everyEpochs = 2; },
                                                    [](Settings& s) { s.evaluation.everyIterations = 4; },
                                                    [](Settings& s) { s.stopping.patience = 2; },
                                                    [](Settings& s) { s.stopping.restoreBest = true; },
                                                    [](Settings& s) { s.stopping.everyEpochs = 2; },
                                                    [](Settings& s) { s.validationExamples = 5; },
                                                    [](Settings& s) { s.evaluations = 2; }};
  for (const auto& change : changes) {
    CAPTURE(&change - changes);
    const auto problems = onLinks(2, [&](NodeLink& link) {
      Settings own;
      if (link.node() == 1) change(own);
      Node node;
      auto validation = ToyIterator::ofValues({1});
      validation.knownExamples = own.validationExamples;
      for (int i = 0; i < own.evaluations; ++i)
        node.options.listeners.push_back(std::make_shared<EvaluationListener>(validation, own.evaluation));
      node.options.listeners.push_back(std::make_shared<EarlyStopping>(own.stopping));
      requireAgreement(link, node.agreement);
    });
    const bool differs = &change != changes;
    CHECK(problems[0].empty() == !differs);
    CHECK(problems[0].starts_with(
        differs
            ? "nodes: node 0 (virtual0) and node 1 (virtual1) differ in the listeners that are called on all "
              "nodes, which must be the same on all nodes; on this node: \"EvaluationListener"
            : ""));
  }
}

TEST_CASE("first batches are compared by names, features and labels") {
  struct Row {
    const char* name;
    float feature, label;
  };
  const Row same{"x", 1, 2};
  const auto agree = [&](const Row& second) {
    return onLinks(2, [&](NodeLink& link) {
      const Row& row = link.node() == 0 ? same : second;
      Node node;
      Batch::ensure(node.first.features, row.name, {1, 1}).data<float>()[0] = row.feature;
      Batch::ensure(node.first.labels, "y", {1, 1}).data<float>()[0] = row.label;
      node.agreement.first = &node.first;
      requireAgreement(link, node.agreement);
    })[0];
  };
  CHECK(agree(same) == "");
  for (const Row& row : {Row{"z", 1, 2}, Row{"x", 3, 2}, Row{"x", 1, 3}})
    CHECK_CONTAINS(agree(row), "differ in the first batch");
}

TEST_CASE("as text an agreement has a line for each item that lasts") {
  Node node;
  for (const char* const name : {"early stopping", "plateau"})
    node.options.listeners.push_back(std::make_shared<Named>(name));
  node.data.knownExamples = 3;
  const std::string text = inWords(node.agreement);
  CHECK(text.starts_with("the version of muster: 1.2.3\nworkers on each node: 2\n"));
  for (const char* const line :
       {"threads of each worker: 1", "the kind of devices: CPUs", "epochs to train: 5",
        "the examples of the data set: 3", "the examples of a batch: not known",
        "the listeners that are called on all nodes: early stopping, plateau", "the math mode: fp32"})
    CHECK_MESSAGE(hasLine(text, line), line);
  CHECK_CONTAINS(text, "\nthe layers of the model: ");  // their hash
  CHECK(text.find("averaging every 4 iterations") != std::string::npos);
  // What changes in the training is left out.
  CHECK(text.find("where the training begins") == std::string::npos);
  const auto before = text;
  node.model.setParameters({1});
  node.model.setCounters(5, 1);
  CHECK(inWords(node.agreement) == before);
}

TEST_CASE("as text an item of several lines is named in each; on GPUs the devices may choose the mode") {
  Described model("{\n  layers\n}");
  Node node(model);
  node.options.devices = {Device::cuda()};
  const std::string text = inWords(node.agreement);
  CHECK_CONTAINS(text,
                 "the configuration of the model: {\nthe configuration of the model: layers\nthe "
                 "configuration of the model: }\n");
  CHECK(hasLine(text, "the kind of devices: GPUs"));
  CHECK(hasLine(text, "the math mode: the GPUs' default"));
}
