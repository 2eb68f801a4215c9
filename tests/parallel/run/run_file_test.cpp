// Run files: read, written, changed by --set, and every field of them wrong in turn.
#include "muster/parallel/run/run_file.h"

#include <functional>
#include <memory>
#include <regex>
#include <set>
#include <tuple>
#include <type_traits>
#include <vector>

#include "muster/core/nn/computation_graph.h"
#include "muster/core/nn/layers.h"
#include "muster/core/nn/models/char_lstm.h"
#include "muster/core/nn/models/convnet.h"
#include "muster/core/nn/models/lenet.h"
#include "muster/core/nn/models/mlp.h"
#include "muster/core/nn/models/resnet18.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/core/optim/schedules.h"
#include "muster/core/optim/updaters.h"
#include "muster/datasets/file_bytes.h"
#include "muster/parallel/run/detail/field_list.h"
#include "muster/parallel/run/detail/override_error.h"
#include "muster/parallel/run/detail/run_fields.h"
#include "muster/parallel/run/detail/run_overrides.h"
#include "muster/parallel/run/run_schema.h"
#include "tests/support/json_schema.h"
#include "tests/support/thrown.h"

namespace {

using namespace muster;
namespace json = boost::json;

/// A run file with every field that its kind of data has.
RunFile whole(std::string_view type) {
  auto network = convnet();
  network.accumulate = 2;
  RunFile run;
  run.data = {.type = std::string(type),
              .trainImages = "i",
              .trainLabels = "l",
              .testImages = "i2",
              .testLabels = "l2",
              .train = "t",
              .test = "t2",
              .classWeights = {1, 2}};
  run.network = network.toJson();
  run.training.strategyOptions = "every=3";
  run.listeners.checkpoints = RunCheckpoints{
      .directory = "c", .keepLast = 2, .best = RunMonitor{.monitor = Monitor::Loss, .mode = "min"}};
  run.listeners.earlyStopping = RunEarlyStopping{.monitored = {.monitor = Monitor::Accuracy, .mode = "max"}};
  return run;
}

json::value asJson(const RunFile& run) {
  return json::parse(run.toJson());
}

std::string problem(const json::value& run, const std::vector<std::string>& sets = {}) {
  return test::thrown<InvalidArgument>([&] { RunFile::parse(json::serialize(run), sets); });
}

/// Calls `visit(path, field, value, in)` for each member of each object, the outermost first.
void eachField(json::value& value, const std::string& path, const auto& visit) {
  if (auto* array = value.if_array())
    for (std::size_t i = 0; i < array->size(); ++i)
      eachField((*array)[i], path + "[" + std::to_string(i) + "]", visit);
  auto* object = value.if_object();
  if (!object) return;
  std::vector<std::string> keys;
  for (const auto& member : *object) keys.emplace_back(member.key());
  for (const auto& key : keys) {
    const std::string inside = path.empty() ? key : path + "." + key;
    visit(inside, key, *object);
    eachField(object->at(key), inside, visit);
  }
}

/// A run file with this network.
json::value withNetwork(const auto& configuration) {
  auto run = whole("generated");
  run.network = configuration.toJson();
  return asJson(run);
}

template <typename... T>
std::vector<std::string> typesIn(std::type_identity<std::tuple<T...>>) {
  return {std::string(T::kType)...};
}

const std::vector<std::string>& layerTypes() {
  static const auto all = typesIn(std::type_identity<muster::detail::LibraryLayers>());
  return all;
}

/// A graph with a vertex of this type.
ComputationGraphConfiguration graphWith(const std::string& type) {
  const Layer layer = Layer(std::shared_ptr<const Module>(Layer::registry().make(type)))
                          .learningRate(0.5)
                          .frozen()
                          .on(Device::cpu());
  return {.inputs = {{.name = "in", .shape = {4}}},
          .vertices = {{.name = "v", .layer = layer, .inputs = {"in"}}},
          .outputs = {{.name = "v", .weight = 0.5}}};
}

/// A value of no type that the field could have.
json::value wrong(const json::value& right) {
  if (right.is_string()) return 17.5;
  if (right.is_bool() || right.is_number()) return "x";
  return true;
}

}  // namespace

TEST_CASE("an invalid value of any field of a run file gives one line that names the field") {
  int fields = 0;
  for (const auto type : kDataTypes) {
    auto run = asJson(whole(type));
    REQUIRE(problem(run) == "");
    eachField(run, "", [&](const std::string& path, const std::string& key, json::object& in) {
      CAPTURE(path);
      ++fields;
      const json::value right = in.at(key);
      in[key] = wrong(right);
      const auto text = problem(run);
      in[key] = right;
      CAPTURE(text);
      CHECK(text != "");
      CHECK(text.find('\n') == std::string::npos);
      CHECK(text.find(key) != std::string::npos);
      const bool own = !path.starts_with("network.") && !path.starts_with("training.strategy.");
      if (own || path.starts_with("network.")) CHECK(text.starts_with(path));
      if (path.starts_with("training.strategy.")) CHECK(text.find(path) != std::string::npos);
    });
    CHECK(problem(run) == "");
  }
  CHECK(fields > 9 * 100);
}

TEST_CASE("texts of a run file must not hold a NUL byte, where the system would end a path") {
  for (const auto type : kDataTypes) {
    auto run = asJson(whole(type));
    eachField(run, "", [&](const std::string& path, const std::string& key, json::object& in) {
      if (!in.at(key).is_string()) return;
      CAPTURE(path);
      const json::value right = in.at(key);
      in[key] = std::string("a\0b", 3);
      CHECK(problem(run) == path + ": expected a text without NUL bytes, found \"a\\u0000b\"");
      in[key] = right;
    });
    run.as_object()["data"].as_object()[std::string("a\0b", 3)] = 1;
    CHECK(problem(run) == "a field in data: expected a text without NUL bytes, found \"a\\u0000b\"");
  }
  CHECK(problem(asJson(whole("csv")), {"training.model=\"a\\u0000b\""})
            .starts_with("training.model: expected"));
}

TEST_CASE("an unknown field is refused, and the error names the nearest known one") {
  auto run = asJson(whole("csv"));
  eachField(run, "", [&](const std::string& path, const std::string& key, json::object& in) {
    if (path == "training.strategy.name") return;  // all other fields there are options
    CAPTURE(path);
    const json::value value = in.at(key);
    in[key + "x"] = value;
    const auto text = problem(run);
    in.erase(key + "x");
    CAPTURE(text);
    CHECK(text.find(key + "x") != std::string::npos);
    CHECK(text.find("nearest is " + key) != std::string::npos);
  });
}

TEST_CASE("values out of range are refused, and the error names their path") {
  const auto run = asJson(whole("csv"));
  CHECK(test::thrown<InvalidArgument>([] { RunFile::parse(" \n"); }) ==
        "it is empty; a run file has data and a network");
  for (const auto* const tab : {"\t", "\\t", "tab"})
    CHECK(DataSource{.separator = tab}.tableFormat().separator == '\t');
  const std::pair<const char*, const char*> cases[] = {
      {"format=muster-run/2", "format: this program reads \"muster-run/1\", found \"muster-run/2\""},
      {"data.type=mnits", "data.type: there is no \"mnits\"; the nearest is mnist, of mnist, "},
      {"data.type=imagenet", "data.type: there is no \"imagenet\"; the nearest is images, of mnist, "},
      {"data.batch=0", "data.batch must be between 1 and 65536, got 0"},
      {"data.separator=ab", "data.separator must be one character, or tab, got \"ab\""},
      {"data.train=\"\"", "data.train: is missing, and data of type csv need it"},
      {"data.classWeights=[1]", "data.classWeights: at least two classes have weights, got 1"},
      {"data.classWeights=[1,-1]", "data.classWeights[1] must be finite and not negative, got -1"},
      {"network.layers[0].outChannels=0", "network: "},
      {"network.layers=[]", "network: "},
      {"training.workers=0", "training.workers must be between 1 and 1024, got 0"},
      {"training.mathMode=fp16",
       "training.mathMode: there is no \"fp16\"; the nearest is fp32, of auto, fp32, tf32, bf16"},
      {"training.strategy.name=diloko",
       "training.strategy.name: there is no strategy \"diloko\"; the nearest is diloco"},
      {"training.strategy.rate=0.7", "training.strategy: strategy averaging: there is no option \"rate\""},
      {"training.strategy.every=0", "training.strategy.every must be between 1 and "},
      {"training.strategy.period.until=x",
       "training.strategy.period.until must be a whole number, got \"x\""},
      {"training.strategy.period=qrs", "training.strategy.period: there is no type \"qrs\""},
      {"data.classWeights=[1,1e300]", "data.classWeights[1] must fit a float32"},
      {"network.l2=x", "network.l2: expected a number"},
      {"network.updater.learningRate=nan",
       "network.updater.learningRate: expected a finite number that fits a double, got nan"},
      {"network.updater.learningRate=-inf",
       "network.updater.learningRate: expected a finite number that fits a double, got -inf"},
      {"network.updater.learningRate=1e400",
       "network.updater.learningRate: expected a finite number that fits a double, got 1e400"},
      {"training.strategy=[5]", "training.strategy: expected an object"},
      {"training.strategy=diloko",
       "training.strategy.name: there is no strategy \"diloko\"; the nearest is "},
      {"training.epochs=2.5", "training.epochs: expected a whole number, found 2.5"},
      {"training.epochs=9223372036854775808",
       "training.epochs: expected a whole number, found 9223372036854775808"},
      {"training.placement=gpu", "training.placement: there is no \"gpu\"; there are auto, "},
      {"data.seed=-1", "data.seed must be between 0 and "},
      {"network.updater.momentum=1", "network: updater nesterovs: momentum must be in [0, 1), got 1"},
      {"network.updater.type=sdg", "network.updater: updater: there is no type \"sdg\"; there are "},
      {"network.l2=-1", "network: "},
      {"listeners.earlyStopping.monitor=acuracy",
       "listeners.earlyStopping.monitor: there is no \"acuracy\"; the nearest is accuracy, of "},
      {"network.updater=0.1", "network.updater: expected an object, found 0.1"},
      {"listeners.earlyStopping.mode=min", "listeners.earlyStopping.mode min contradicts"},
      {"compare.foo=1", "compare.foo: there is no such field"},
      {"compare.testEvery=often", "compare.testEvery: expected a whole number"},
  };
  for (const auto& [set, begin] : cases) {
    const auto text = problem(run, {set});
    CAPTURE(set);
    CAPTURE(text);
    CHECK(text.starts_with(begin));
  }
  const auto drawn = asJson(whole("generated"));
  CHECK(problem(drawn, {"data.directory=d"}).starts_with("data.directory: there is no such field"));
  CHECK(problem(drawn, {"data.trainExamples=-1"}).starts_with("data.trainExamples must be between 0 and "));
}

TEST_CASE("of two --set of the same field the later one wins, also if one of them sets it with others") {
  const auto with = [text = whole("generated").toJson()](std::vector<std::string> sets) {
    return RunFile::parse(text, sets);
  };
  CHECK(with({"training.workers=3", "training.workers=5"}).training.workers == 5);
  CHECK(with({"training.workers=0", "training.workers=5"}).training.workers == 5);
  const std::string object = R"(training.strategy={"name": "averaging", "every": 7})";
  CHECK(with({object, "training.strategy.every=5"}).training.strategyOptions == "every=5");
  CHECK(with({"training.strategy.every=5", object}).training.strategyOptions == "every=7");
  const auto named = with({object, "training.strategy.name=diloco"});
  CHECK(named.training.strategy == "diloco");
  CHECK(named.training.strategyOptions.empty());
  CHECK(with({"training.strategy.name=diloco", object}).training.strategy == "averaging");
  const std::string data = R"(data={"type": "fashion", "batch": 4})";
  CHECK(with({data, "data.type=mnist"}).data.type == "mnist");
  CHECK(with({"data.type=mnist", data}).data.type == "fashion");
  CHECK(with({"data.type=mnist", "data.type=fashion"}).data.type == "fashion");
  // What belongs to a strategy or to a type of data may be set before its name.
  const auto before = with({"training.strategy.every=9", "training.strategy.name=diloco"});
  CHECK(before.training.strategy == "diloco");
  CHECK(before.training.strategyOptions == "every=9");
  CHECK(with({"data.directory=d", "data.type=mnist"}).data.directory == "d");
  // Another type of data drops all fields of the old one.
  for (const auto* const type : {"fashion", "idx", "csv", "images", "safetensors"})
    CHECK(RunFile::parse(whole(type).toJson(), {{"data.type=mixtures"}}).data.type == "mixtures");
}

TEST_CASE("short forms: a strategy or updater by name, a learning rate as 0.01, a whole number as 2.0") {
  const auto with = [text = whole("generated").toJson()](std::vector<std::string> sets) {
    return RunFile::parse(text, sets);
  };
  const auto strategy = with({"training.strategy=diloco"}).training;
  CHECK(strategy.strategy == "diloco");
  CHECK(strategy.strategyOptions.empty());
  CHECK(with({"training.strategy=diloco", "training.strategy.rate=0.5"}).training.strategyOptions ==
        "rate=0.5");
  CHECK(with({"training.epochs=2.0", "training.workers=3e0"}).training.epochs == 2);
  const auto rate = json::parse(with({"network.updater=adam", "network.updater.learningRate=0.01"}).network);
  CHECK(rate.at("updater").at("type") == "adam");
  CHECK(rate.at("updater").at("learningRate") == 0.01);
  CHECK(with({"training.strategy=10"}).training.strategy == "averaging");
  CHECK(with({"training.strategy=10"}).training.strategyOptions == "every=10");
  CHECK(with({"training.strategy=10", "training.strategy.updaterState=keep"}).training.strategyOptions ==
        "every=10,updaterState=keep");
  CHECK(with({"listeners.earlyStopping=7"}).listeners.earlyStopping->patience == 7);
  CHECK(with({"listeners.earlyStopping=7", "listeners.earlyStopping.monitor=auc"})
            .listeners.earlyStopping->patience == 7);
  CHECK(with({"listeners.reduceOnPlateau=4"}).listeners.reduceOnPlateau->patience == 4);
  CHECK(with({"listeners.checkpoints=d"}).listeners.checkpoints->directory == "d");
  CHECK(with({"listeners.checkpoints=d", "listeners.checkpoints.best=accuracy"})
            .listeners.checkpoints->best->monitor == Monitor::Accuracy);
  auto flat = json::parse(mlp({8}, 3).toJson());
  flat.as_object()["inputShape"] = 784;
  CHECK(MultiLayerConfiguration::fromJson(json::serialize(flat)).inputShape == Shape{784});
  const auto warmer = json::parse(with({"network.updater=adam", "network.updater.learningRate=0.01",
                                        "network.updater.learningRate.value=0.5"})
                                      .network);
  CHECK(warmer.at("updater").at("learningRate").at("value") == 0.5);
  const test::JsonSchema schema(json::parse(runFileSchema()));
  auto run = asJson(whole("generated"));
  for (const char* set : {"listeners.earlyStopping=7", "listeners.reduceOnPlateau=4",
                          "listeners.checkpoints=d", "training.strategy=10", "network.inputShape=784"}) {
    detail::applyOverride(run.as_object(), set);
    CHECK(schema.problem(run) == "");
  }
  run = asJson(whole("generated"));
  for (const char* set : {"training.strategy=diloco", "network.updater=adam", "training.epochs=2"}) {
    detail::applyOverride(run.as_object(), set);
    CHECK(schema.problem(run) == "");
  }
  detail::applyOverride(run.as_object(), "network.updater={\"type\":\"sgd\",\"learningRate\":0.01}");
  CHECK(schema.problem(run) == "");
  detail::applyOverride(run.as_object(), "listeners.earlyStopping=often");
  CHECK(schema.problem(run) != "");
  CHECK(problem(run).starts_with("listeners.earlyStopping.patience: expected a whole number, found"));
  detail::applyOverride(run.as_object(), "listeners.earlyStopping=5");
  detail::applyOverride(run.as_object(), "network.updater=[1]");
  CHECK(schema.problem(run) != "");
}

TEST_CASE("an error names the --set that is wrong, wherever it is among others") {
  const auto run = asJson(whole("generated"));
  const std::string wrong = "network.layers[99].bias=true",
                    expected = "network.layers[99].bias: layers has no element 99";
  CHECK(problem(run, {wrong, "training.workers=2", "data.type=mnist"}) == expected);
  CHECK(problem(run, {"data.type=mnist", "training.workers=2", wrong}) == expected);
  CHECK(problem(run, {"training.workers=2", "training.groups=0"}).starts_with("training.groups"));
  CHECK(problem(run, {"training.=2"}).starts_with("training.: expected a path"));
}

TEST_CASE("an override that is to blame for an error is told from the file, and from other overrides") {
  const auto blamed = [](const json::value& run, const std::vector<std::string>& sets) {
    try {
      RunFile::parse(json::serialize(run), sets);
    } catch (const detail::OverrideError& error) {
      return sets[error.index()];
    } catch (const InvalidArgument&) {
      return std::string("the file");
    }
    return std::string("none");
  };
  auto run = asJson(whole("generated"));
  CHECK(blamed(run, {"training.workers=2"}) == "none");
  CHECK(blamed(run, {"training.epochs=2", "training.workers=0", "data.batch=4"}) == "training.workers=0");
  CHECK(blamed(run, {"workers"}) == "workers");
  CHECK(blamed(run, {"training.workers=0", "training.workers=0"}) == "training.workers=0");
  // Each of the two is needed for the problem; it is with the field of the second.
  const std::string momentum = "network.updater.momentum=0.5";
  CHECK(blamed(run, {"network.updater.type=adam", momentum}) == momentum);
  CHECK(blamed(run, {momentum, "network.updater.type=adam"}) == momentum);
  run.at("training").as_object()["workers"] = 0;
  CHECK(blamed(run, {"training.epochs=2"}) == "the file");
  CHECK(blamed(run, {"training.workers=2"}) == "none");
  // Without the batch there is another problem, but both are of the file.
  run.at("data").as_object()["batch"] = 0;
  CHECK(blamed(run, {"data.batch=4"}) == "the file");
  CHECK(blamed(run, {"data.batch=4", "training.workers=-1"}) == "training.workers=-1");
}

TEST_CASE("of several overrides of one field, one is to blame, and not one of another field") {
  const auto run = asJson(whole("generated"));
  const std::string wrong = "training.workers=0";
  const std::vector<std::string> overrides{wrong, wrong, "training.epochs=2"};
  try {
    RunFile::parse(json::serialize(run), overrides);
    FAIL("it is valid");
  } catch (const detail::OverrideError& error) {
    CHECK(error.index() == 1);
  }
}

TEST_CASE("a set by a name alone is refused with the path of the field that is meant") {
  const auto refusal = [run = asJson(whole("generated"))](const std::string& set) {
    return problem(run, {set});
  };
  for (const auto& [set, path] : {std::pair{"lr=0.1", "network.updater.learningRate"},
                                  {"updater.momentum=0.5", "network.updater.momentum"},
                                  {"workers=2", "training.workers"},
                                  {"epoch=2", "training.epochs"},
                                  {"listener.curves=a", "listeners.curves"},
                                  {"networks.l1=1", "network.l1"}}) {
    const std::string name(set, std::string_view(set).find('='));
    CHECK(refusal(set) == fmt::format("a run file has no field {}; the nearest is {}", name, path));
  }
  CHECK(refusal("zigzag=1") ==
        "a run file has no field zigzag; there are format, data, network, training, listeners, compare, "
        "$schema");
  CHECK(refusal("dat=1") == "a run file has no field dat; the nearest is data");
}

TEST_CASE("--set changes any field, adds a missing one, and refuses an invalid path") {
  const auto text = whole("csv").toJson();
  const auto with = [&](std::vector<std::string> sets) { return RunFile::parse(text, sets); };
  CHECK(with({"training.workers=4"}).training.workers == 4);
  CHECK(with({"data.label=kind"}).data.label == "kind");
  CHECK(with({"data.label=\"3\""}).data.label == "3");
  CHECK(with({"data.label=3"}).data.label == "3");
  CHECK(with({"data.train=2024", "training.model=1.50"}).data.train == "2024");
  CHECK(with({"training.model=1.50"}).training.model == "1.50");
  CHECK(with({"data.classWeights={\"rare\": 5}"}).data.weightedClasses == std::vector<std::string>{"rare"});
  CHECK(with({"data.classWeights=null", "data.classWeights.rare=5"}).data.classWeights ==
        std::vector<double>{5});
  CHECK(with({"data.classWeights=[2, 3.5]"}).data.classWeights == std::vector<double>{2, 3.5});
  const auto diloco = with({"training.strategy={\"name\": \"diloco\"}", "training.strategy.rate=0.5",
                            "training.strategy.every=7"});
  CHECK(diloco.training.strategy == "diloco");
  CHECK(diloco.training.strategyOptions == "rate=0.5,every=7");
  // Another strategy has other options; the same one keeps them.
  const auto named = with({"training.strategy.rate=0.5", "training.strategy.name=slowmo"});
  CHECK(named.training.strategy == "slowmo");
  CHECK(named.training.strategyOptions == "rate=0.5");
  const auto same = with({"training.strategy.name=" + with({}).training.strategy});
  CHECK(same.training.strategyOptions == with({}).training.strategyOptions);
  CHECK(
      with({"training.strategy.period=qsr", "training.strategy.period.alpha=0.25"}).makeStrategy(1).make() !=
      nullptr);
  CHECK(with({"network.layers[0].outChannels=7"}).network.find("\"outChannels\": 7") != std::string::npos);
  auto bare = json::object{{"format", "muster-run/1"},
                           {"data", json::object{{"type", "generated"}}},
                           {"network", json::parse(convnet().toJson())}};
  const std::vector<std::string> stop{"listeners.earlyStopping.monitor=accuracy",
                                      "listeners.earlyStopping.mode=max"};
  const auto stopped = RunFile::parse(json::serialize(bare), stop);
  REQUIRE(stopped.listeners.earlyStopping);
  CHECK(stopped.listeners.earlyStopping->patience == 5);
  CHECK(stopped.training.workers == 1);

  CHECK(problem(bare, {"workers"}) == "workers: expected KEY=VALUE, as in training.workers=4");
  CHECK(problem(bare, {"training.model=\xff.st"}) ==
        "training.model=\xff.st: expected UTF-8, as in all of a run file");
  CHECK(problem(bare, {"network.layers[99].bias=1"}) == "network.layers[99].bias: layers has no element 99");
  CHECK(problem(bare, {"data.type.name=1"}) == "data.type.name: type is no object");
  CHECK(problem(bare, {"network.vertices[1].units=4"}) ==
        "network.vertices[1].units: there is no list vertices; there is inputShape, layers");
  CHECK(problem(bare, {"data.rows[0]=4"}) == "data.rows[0]: there is no list rows");
}

TEST_CASE("--set with null takes a field out of the file") {
  const auto text = whole("csv").toJson();
  const auto with = [&](std::vector<std::string> sets) { return RunFile::parse(text, sets); };
  CHECK_FALSE(with({"listeners.checkpoints=null"}).listeners.checkpoints);
  CHECK_FALSE(with({"listeners.checkpoints.best=null"}).listeners.checkpoints->best);
  CHECK_FALSE(with({"listeners.earlyStopping=null", "listeners.reduceOnPlateau.factor=null"})
                  .listeners.reduceOnPlateau);
  CHECK(with({"listeners.checkpoints=null", "listeners.checkpoints=d"}).listeners.checkpoints->keepLast == 0);
  CHECK(with({"training.strategy.every=null"}).training.strategyOptions.find("every") == std::string::npos);
  CHECK(with({"data.classWeights=null", "training=null"}).training.workers == 1);
  CHECK(problem(json::parse(text), {"data.type=null"}) == "data.type: is missing");
  CHECK(problem(json::parse(text), {"data.colums=null"}) ==
        "a run file has no field data.colums; the nearest is data.columns");
  CHECK(problem(json::parse(text), {"listeners.earlyStoping.patience=null"}) ==
        "a run file has no field listeners.earlyStoping.patience; the nearest is "
        "listeners.earlyStopping.patience");
  CHECK(with({"listeners=null", "listeners.checkpoints.best=null"}).listeners.testEvery == 0);
}

TEST_CASE("a list on the command line has commas between its elements") {
  const auto text = whole("csv").toJson();
  const auto with = [&](std::vector<std::string> sets) { return RunFile::parse(text, sets); };
  using Words = std::vector<std::string>;
  CHECK(with({"data.columns=a,b c,3"}).data.columns == Words{"a", "b c", "3"});
  CHECK(with({"data.leaveOut=id"}).data.leaveOut == Words{"id"});
  CHECK(with({"data.columns=7"}).data.columns == Words{"7"});
  CHECK(with({R"(data.columns=["a,b","c"])"}).data.columns == Words{"a,b", "c"});
  CHECK(with({R"(data.columns="a, b",c)"}).data.columns == Words{"a, b", "c"});
  CHECK(with({"data.classWeights=2,3.5"}).data.classWeights == std::vector<double>{2, 3.5});
  CHECK(with({"network.layers[0].kernel=3,5"}).network.find("\"kernel\": [3, 5]") != std::string::npos);
  CHECK(with({"data.label=a,b"}).data.label == "a,b");
  CHECK(with({R"(training.devices="cpu")", R"(data.label="1,2")"}).data.label == "1,2");
  CHECK(with({"data.columns=a", "data.columns=null"}).data.columns.empty());
}

TEST_CASE("another schedule, layer or named network drops the fields of the old one") {
  const auto with = [text = whole("generated").toJson()](std::vector<std::string> sets) {
    return json::parse(RunFile::parse(text, sets).network);
  };
  const json::object tenEpochs{{"type", "cosine"}, {"epochs", 10}};
  for (const std::string rate : {"0.5", R"({"type": "step", "initial": 0.5, "every": 7})"})
    CHECK(with({"network.updater.learningRate=" + rate, "network.updater.learningRate.epochs=10",
                "network.updater.learningRate.type=cosine"})
              .at("updater")
              .at("learningRate") == tenEpochs);
  CHECK(with({"network.layers[0].type=batchnorm"}).at("layers").at(0) == json::object{{"type", "batchnorm"}});
  const auto named = with({R"(network={"name": "resnet18", "width": 4})", "network.name=mlp"});
  CHECK(named.at("name") == "mlp");
  CHECK(named.at("hidden").as_array().empty());
  // A part of the updater that the library gives a network.
  const auto slow = with({"network=resnet18", "network.updater.learningRate=0.01"}).at("updater");
  CHECK(slow.at("type") == "nesterovs");
  CHECK(slow.at("momentum") == 0.9);
  CHECK(slow.at("learningRate").at("value") == 0.01);
  const auto run = asJson(whole("generated"));
  CHECK(problem(run, {"network.updater.learningRate=fast"}) ==
        "network.updater.learningRate: expected a number, or a schedule as in {\"type\": \"cosine\", "
        "\"initial\": 0.1, \"epochs\": 10}, found the string \"fast\"");
}

TEST_CASE("fields of some types of data name these types") {
  CHECK(detail::fieldAt("data.label").description.starts_with("of csv: column to predict"));
  CHECK(detail::fieldAt("data.train").description.starts_with("of csv, images, safetensors: the file"));
  CHECK(detail::fieldAt("data.batch").description == "examples in a batch of one worker");
}

TEST_CASE("a run file is written and read back, and a results file gives its configuration") {
  for (const auto type : kDataTypes) {
    const auto run = whole(type);
    const auto again = RunFile::parse(run.toJson());
    CHECK(again.toJson() == run.toJson());
    json::object result{{"program", "x"}, {"configuration", asJson(run)}};
    CHECK(RunFile::parse(json::serialize(result)).toJson() == run.toJson());
  }
  for (const auto& strategy : {"diloco", "gossip", "shared", "easgd", "asynchronous", "hierarchical"}) {
    CAPTURE(strategy);
    auto run = whole("mnist");
    run.training.workers = 4;
    run.training.strategy = strategy;
    run.training.strategyOptions = "";
    CHECK(RunFile::parse(run.toJson()).toJson() == run.toJson());
  }
}

TEST_CASE("the schema has the options of each strategy, with their types in run files") {
  const auto schema = json::parse(runFileSchema());
  const test::JsonSchema checks(schema);
  const auto& strategy =
      schema.at("properties").at("training").at("properties").at("strategy").at("anyOf").at(0);
  const auto& rules = strategy.at("allOf").as_array();
  REQUIRE(rules.size() == strategy.at("properties").at("name").at("enum").as_array().size());
  for (const auto& rule : rules) {
    const auto& name = rule.at("if").at("properties").at("name").at("const").as_string();
    CAPTURE(std::string(name));
    auto run = whole("mnist");
    run.training.workers = 4;
    run.training.strategy = name;
    run.training.strategyOptions = "";
    CHECK(checks.problem(asJson(run)) == "");
    const auto written = asJson(run).at("training").at("strategy").as_object();
    const auto& options = rule.at("then").at("properties").as_object();
    for (const auto& [option, value] : options) {
      const std::string_view path = option;
      if (written.contains(path)) continue;
      CAPTURE(std::string(path));  // of another type of the option that it is in
      CHECK(options.contains(path.substr(0, path.find('.'))));
      CHECK(value.at("description").as_string().starts_with("of "));
    }
    for (const auto& [option, value] : written) {
      if (option == "name") continue;
      CAPTURE(std::string(option));
      REQUIRE(options.contains(option));
      const auto* const type = options.at(option).as_object().if_contains("type");
      if (!type) continue;
      CHECK((*type == "boolean") == value.is_bool());
      CHECK((*type == "integer") <= value.is_int64());
      CHECK((*type == "number") <= value.is_number());
    }
  }
  auto run = asJson(whole("mnist"));
  run.at("training").at("strategy").as_object()["updaterState"] = "keeps";
  CHECK(checks.problem(run) == R"(/training/strategy/updaterState: is none of ["average","keep","reset"])");
}

TEST_CASE("the schema has the types of each option with options of its own, and refuses other options") {
  const auto schema = json::parse(runFileSchema());
  const test::JsonSchema checks(schema);
  auto run = asJson(whole("mnist"));
  const auto strategy = [&](const json::object& options) {
    run.at("training").as_object()["strategy"] = options;
    return checks.problem(run);
  };
  for (const auto& rule :
       schema.at_pointer("/properties/training/properties/strategy/anyOf/0/allOf").as_array())
    for (const auto& [option, values] : rule.at("then").at("properties").as_object()) {
      const std::string name(rule.at("if").at("properties").at("name").at("const").as_string());
      const auto refusal = problem(run, {"training.strategy.name=" + name,
                                         fmt::format("training.strategy.{}=?", std::string_view(option))});
      const auto words = refusal.find("there is no type \"?\"; there are ");
      if (words == refusal.npos) continue;
      CAPTURE(refusal);
      std::string known;
      for (const auto& word : values.at("enum").as_array())
        known.append(known.empty() ? "; there are " : ", ").append(word.as_string());
      CHECK(refusal.ends_with(known));
    }
  for (const auto& options : {json::object{{"every", 3}, {"period", "qsr"}, {"period.alpha", 0.2}},
                              {{"name", "averaging"}, {"codec", "top-k"}, {"codec.share", 0.1}},
                              {{"name", "overlapped"}, {"landing", "pull"}, {"landing.strength", 0.1}},
                              {{"name", "shared"}, {"threshold", "target"}, {"threshold.density", 0.1}},
                              {{"name", "asynchronous"}, {"speeds", json::array{1, 0.5}}, {"staleness", 2}},
                              {{"name", "easgd"}, {"elasticity", "none"}},
                              {{"name", "hierarchical"}, {"levels", "4:2,16:all"}}})
    CHECK_MESSAGE(strategy(options) == "", json::serialize(options));
  CHECK(strategy({{"evry", 3}}) == "/training/strategy: unknown field evry");
  CHECK(strategy({{"name", "diloco"}, {"codec.shore", 1}}) ==
        "/training/strategy: unknown field codec.shore");
  CHECK(strategy({{"codec", 7}}).starts_with("/training/strategy/codec: is none of "));
  CHECK(strategy({{"name", "easgd"}, {"elasticity", true}})
            .starts_with("/training/strategy/elasticity: is no "));
}

TEST_CASE(
    "the schema refuses what the program refuses: no workers, own monitors, other modes, unknown parts") {
  const test::JsonSchema checks(json::parse(runFileSchema()));
  for (const auto& [set, text] :
       {std::pair("training.workers=0", "/training/workers: too small"),
        {"training.epochs=0", "/training/epochs: too small"},
        {"training.groups=0", "/training/groups: too small"},
        {"training.threadsPerWorker=0", "/training/threadsPerWorker: too small"},
        {"data.batch=0", "/data/batch: too small"},
        {"listeners.earlyStopping.monitor=own", "/listeners/earlyStopping/monitor: is none of "},
        {"listeners.earlyStopping.mode=most", "/listeners/earlyStopping/mode: is none of "},
        {"compare.foo=1", "/compare: unknown field foo"},
        {"compare.testEvery=often", "/compare/testEvery: is no "}}) {
    auto run = asJson(whole("mnist"));
    detail::applyOverride(run.as_object(), set);
    CAPTURE(set);
    CHECK(checks.problem(run).starts_with(text));
    CHECK(problem(run) != "");
  }
  auto run = asJson(whole("mnist"));
  run.as_object()["compare"] = json::parse(
      R"({"arms": ["averaging every={1,10}"], "seeds": [1, 2], "tune": ["learningRate=0.1,0.2"],
          "testEvery": 100, "baseline": "averaging every=1", "target": 97.5, "link": "10Gbit,50us"})");
  CHECK(checks.problem(run) == "");
  CHECK(problem(run) == "");
}

TEST_CASE("run files of all data types, models, layers, updaters and schedules satisfy the schema") {
  const test::JsonSchema schema(json::parse(runFileSchema()));
  for (const auto type : kDataTypes) {
    CAPTURE(type);
    CHECK(schema.problem(asJson(whole(type))) == "");
  }
  auto edited = withNetwork(convnet());
  CHECK(schema.problem(edited) == "");
  edited.as_object()["$schema"] = "run.schema.json";  // by which an editor finds it
  CHECK(schema.problem(edited) == "");
  CHECK(problem(edited) == "");
  CHECK(schema.problem(withNetwork(lenet(10))) == "");
  CHECK(schema.problem(withNetwork(mlp({8}, 3))) == "");
  CHECK(schema.problem(withNetwork(charLstm(32))) == "");
  CHECK(schema.problem(withNetwork(resnet18(10))) == "");
  for (const auto& type : layerTypes()) {
    CAPTURE(type);
    const auto graph = graphWith(type);
    CHECK(schema.problem(withNetwork(graph)) == "");
    MultiLayerConfiguration chain;
    chain.layers = {graph.vertices[0].layer};
    const bool oneInput = chain.layers[0].module().takesOneInput();
    CHECK((schema.problem(withNetwork(chain)) == "") == oneInput);
  }
  auto network = convnet();
  const auto takes = [&](const Updater& updater) {
    network.updater = updater;
    return schema.problem(withNetwork(network));
  };
  for (const auto& type : typesIn(std::type_identity<LibraryUpdaters>()))
    CHECK_MESSAGE(takes(Updater::named(type, 0.5)) == "", type);
  for (const Schedule& schedule :
       {Schedule(StepSchedule{}), Schedule(ExponentialSchedule{}), Schedule(CosineSchedule{}),
        Schedule(WarmUpSchedule{.then = WarmUpSchedule{.then = CosineSchedule{}}})})
    CHECK_MESSAGE(takes(Adam{.learningRate = schedule}) == "", std::string(schedule.type()));
  for (const Init& init : {Init::xavier(), Init::he(), Init::normal(0.1), Init::uniform(0.1), Init::zero(),
                           Init::constant(0.5)}) {
    network.layers = {Dense{.units = 3, .init = init}};
    CHECK_MESSAGE(schema.problem(withNetwork(network)) == "", std::string(nameOf(init.kind)));
  }
}

TEST_CASE("the schema has each layer of the library, with exactly the fields that files have") {
  const auto schema = json::parse(runFileSchema());
  for (const bool vertices : {false, true}) {
    const auto& layer = schema.at("$defs").at(vertices ? "vertex" : "layer");
    std::size_t described = 0;
    for (const auto& type : layerTypes()) {
      CAPTURE(type);
      const auto graph = graphWith(type);
      if (!vertices && !graph.vertices[0].layer.module().takesOneInput()) continue;
      auto written = json::parse(graph.toJson()).at("vertices").at(0).as_object();
      if (!vertices)
        for (const auto* own : {"vertex", "inputs"}) written.erase(own);
      const json::object* fields = nullptr;
      for (const auto& rule : layer.at("allOf").as_array())
        if (rule.at("if").at("properties").at("type").at("const") == json::value(type))
          fields = &rule.at("then").at("properties").as_object();
      REQUIRE(fields != nullptr);
      ++described;
      CHECK(fields->size() == written.size());
      for (const auto& [name, value] : written) CHECK_MESSAGE(fields->contains(name), std::string(name));
    }
    CHECK(layer.at("properties").at("type").at("enum").as_array().size() == described);
    CHECK(layer.at("allOf").as_array().size() == described);
  }
}

TEST_CASE("an invalid network is refused by the schema and by the program") {
  const test::JsonSchema schema(json::parse(runFileSchema()));
  int fields = 0;
  const auto everyField = [&](json::value run) {
    REQUIRE(problem(run) == "");
    eachField(run, "", [&](const std::string& path, const std::string& key, json::object& in) {
      if (!path.starts_with("network.")) return;
      CAPTURE(path);
      ++fields;
      const json::value right = in.at(key);
      in[key] = wrong(right);
      CHECK(schema.problem(run) != "");
      in[key] = right;
      in[key + "x"] = right;
      CHECK(schema.problem(run) != "");
      in.erase(key + "x");
    });
  };
  everyField(withNetwork(convnet()));
  everyField(withNetwork(resnet18(10)));
  auto slow = mlp({8}, 3);
  slow.updater = AdamW{.learningRate = WarmUpSchedule{.then = StepSchedule{}}};
  everyField(withNetwork(slow));
  CHECK(fields > 300);

  const auto chain = withNetwork(convnet()), graph = withNetwork(resnet18(10));
  const auto refused = [&](json::value run, const std::string& pointer, const json::value& value) {
    CAPTURE(pointer);
    const auto slash = pointer.rfind('/');
    json::value* in = &run;
    for (std::size_t at = 1; at < slash;) {
      const auto end = pointer.find('/', at);
      const auto key = pointer.substr(at, end - at);
      in = in->is_array() ? &in->get_array().at(std::stoul(key)) : &in->get_object().at(key);
      at = end + 1;
    }
    const auto last = pointer.substr(slash + 1);
    if (in->is_array())
      in->get_array().at(std::stoul(last)) = value;
    else
      in->get_object()[last] = value;
    CHECK(problem(run) != "");
    return schema.problem(run);
  };
  const std::string first = "/network/layers/0", vertex = "/network/vertices/1";
  CHECK(refused(chain, first + "/type", "covn2d").starts_with(first + "/type: is none of "));
  CHECK(refused(chain, first, {{"type", "combine"}}).starts_with(first + "/type: is none of "));
  CHECK(refused(chain, first, {{"units", 3}}) == first + ": has no \"type\"");
  CHECK(refused(chain, first + "/kernel", {5}) == first + "/kernel: too short");
  CHECK(refused(chain, first + "/kernel", {5, 5, 5}) == first + "/kernel: too long");
  CHECK(refused(chain, first + "/units", 3) == first + ": unknown field units");
  CHECK(refused(chain, first + "/activation", "rleu").starts_with(first + "/activation: is none of "));
  CHECK(refused(chain, "/network/updater/type", "adma").starts_with("/network/updater/type: is none of "));
  CHECK(refused(chain, "/network/updater/beta1", 0.5) == "/network/updater: unknown field beta1");
  CHECK(refused(chain, "/network/updater/learningRate", true) ==
        "/network/updater/learningRate: is no \"object\"");
  CHECK(refused(chain, "/network/seed", -1) == "/network/seed: too small");
  CHECK(refused(chain, "/network/version", 2) == "/network/version: is not 1");
  CHECK(refused(chain, "/network/format", "muster.Chain").starts_with("/network/format: is none of "));
  CHECK(refused(chain, "/network/vertices", json::array()) == "/network: unknown field vertices");
  CHECK(refused(graph, "/network/inputShape", {1}) == "/network: unknown field inputShape");
  CHECK(refused(graph, vertex, {{"type", "flatten"}, {"vertex", "a"}}) == vertex + ": has no \"inputs\"");
  for (const auto* name : {"format", "version", "layers"}) {
    auto less = chain;
    less.as_object()["network"].as_object().erase(name);
    CHECK(problem(less) != "");
    CHECK(schema.problem(less) == fmt::format("/network: has no \"{}\"", name));
  }
}

TEST_CASE("the schema has every field of a run file") {
  const auto schema = json::parse(runFileSchema());
  for (const auto type : kDataTypes) {
    auto run = asJson(whole(type));
    eachField(run, "", [&](const std::string& path, const std::string&, json::object&) {
      if (path.starts_with("network.") || path.starts_with("training.strategy.")) return;
      CAPTURE(path);
      const json::value* at = &schema;
      std::string_view rest = path;
      while (at && !rest.empty()) {
        const auto dot = std::min(rest.find('.'), rest.size());
        const auto* properties = at->as_object().if_contains("properties");
        at = properties ? properties->as_object().if_contains(rest.substr(0, dot)) : nullptr;
        rest.remove_prefix(std::min(dot + 1, rest.size()));
      }
      CHECK(at != nullptr);
    });
  }
}

/// The words that a description explains, as in "nll: ...; mse, mae and huber: ...", but that are no values.
std::set<std::string> wordsOtherThanValues(const json::object& field) {
  const auto* const values = field.if_contains("enum");
  if (!values) return {};
  std::set<std::string> words, allowed;
  for (const auto& value : values->as_array())
    if (value.is_string()) allowed.emplace(value.get_string());
  const std::string text(field.at("description").as_string());
  const std::regex explained(R"((?:^|; )(\w+(?:(?:, | and | or )\w+)*): )"), word(R"(\w+)");
  for (std::sregex_iterator clause(text.begin(), text.end(), explained), end; clause != end; ++clause) {
    const auto head = (*clause)[1].str();
    for (std::sregex_iterator one(head.begin(), head.end(), word); one != end; ++one)
      words.insert(one->str());
  }
  for (const char* between : {"and", "or"}) words.erase(between);
  if (allowed.contains("")) words.erase("empty");
  std::erase_if(words, [&](const std::string& one) { return allowed.contains(one); });
  return words;
}

TEST_CASE("every field of a run file has a description, of values that it has") {
  // Walks the schema: every property whose schema is not {} (described elsewhere), and not the type that a
  // rule is about.
  std::size_t described = 0;
  const std::function<void(const json::value&, const std::string&)> walk = [&](const json::value& schema,
                                                                               const std::string& path) {
    if (const auto* list = schema.if_array())
      for (const auto& one : *list) walk(one, path);
    if (!schema.is_object()) return;
    for (const auto& [keyword, inside] : schema.get_object()) {
      if (keyword == "if" || keyword == "default") continue;
      if (keyword != "properties") {
        walk(inside, path);
        continue;
      }
      for (const auto& [name, field] : inside.as_object()) {
        const auto at = path + "/" + std::string(name);
        if (name != "type" || !field.as_object().contains("const")) {
          if (field.as_object().empty()) continue;
          CAPTURE(at);
          const auto* const text = field.as_object().if_contains("description");
          REQUIRE(text != nullptr);
          CHECK(text->as_string().size() > 3);
          CHECK_FALSE(text->as_string().ends_with('.'));
          CHECK(wordsOtherThanValues(field.as_object()).empty());
          ++described;
        }
        walk(field, at);
      }
    }
  };
  walk(json::parse(runFileSchema()), "");
  CHECK(described > 300);
}

TEST_CASE("fields are listed by path with their values and defaults") {
  CHECK(detail::fieldAt("training.workers").values == "whole number");
  CHECK(detail::fieldAt("training.workers").preset == "1");
  CHECK(detail::fieldAt("training.mathMode").values == "auto, fp32, tf32, bf16");
  CHECK(detail::fieldAt("training.mathMode").preset == "\"auto\"");
  CHECK(detail::fieldAt("data.classWeights").values == "list of numbers or numbers by name");
  CHECK(detail::fieldAt("data.label").values == "text or whole number");
  CHECK(detail::fieldAt("listeners.checkpoints.best.monitor").values.starts_with("accuracy, loss"));
  CHECK(detail::fieldAt("data.type").preset.empty());
  CHECK_THROWS_AS(detail::fieldAt("training.worker"), std::out_of_range);
}

TEST_CASE("the guide's page about run files is that of the program") {
  // To make it again: muster schema --markdown > examples/docs/run_file.md
  const auto bytes = readFile(MUSTER_RUN_FILE_PAGE);
  CHECK(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == detail::runFilePage());
}
