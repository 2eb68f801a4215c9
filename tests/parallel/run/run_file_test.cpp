// Run files: read, written, changed by --set, and every field of them wrong in turn.
#include "muster/parallel/run/run_file.h"

#include "muster/core/nn/models/mlp.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/datasets/file_bytes.h"
#include "muster/parallel/run/detail/field_list.h"
#include "muster/parallel/run/detail/override_error.h"
#include "muster/parallel/run/detail/run_fields.h"
#include "muster/parallel/run/detail/run_overrides.h"
#include "muster/parallel/run/run_schema.h"
#include "tests/parallel/run/whole_runs.h"
#include "tests/support/json_schema.h"

namespace {

using namespace muster;
using test::asJson, test::eachField, test::problem, test::whole, test::wrong;
namespace json = boost::json;

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
  for (const auto& [in, list] :
       {std::pair("data", "columns"), {"data", "classWeights"}, {"data", "rows"}, {"compare", "arms"}})
    CHECK(problem(bare, {fmt::format("{}.{}[0]=4", in, list)}) ==
          fmt::format("{0}.{1}[0]: {1} has no element 0", in, list));
  bare["network"] = json::object{{"name", "mlp"}};
  CHECK(problem(bare, {"network.hidden[0]=4"}) == "network.hidden[0]: hidden has no element 0");
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

TEST_CASE("fields are listed by path with their values and defaults") {
  CHECK(detail::fieldAt("training.workers").values == "whole number, at least 1, at most 1024");
  CHECK(detail::fieldAt("training.workers").preset == "1");
  CHECK(detail::fieldAt("training.mathMode").values == "auto, fp32, tf32, bf16");
  CHECK(detail::fieldAt("training.mathMode").preset == "\"auto\"");
  CHECK(detail::fieldAt("data.classWeights").values == "list of numbers or numbers by name");
  CHECK(detail::fieldAt("data.label").values == "text or whole number, at least 1");
  CHECK(detail::fieldAt("listeners.checkpoints.best.monitor").values.starts_with("accuracy, loss"));
  CHECK(detail::fieldAt("data.type").preset.empty());
  CHECK_THROWS_AS(detail::fieldAt("training.worker"), std::out_of_range);
}

TEST_CASE("the guide's page about run files is that of the program") {
  // To make it again: muster schema --markdown > examples/docs/run_file.md
  const auto bytes = readFile(MUSTER_RUN_FILE_PAGE);
  CHECK(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == detail::runFilePage());
}
