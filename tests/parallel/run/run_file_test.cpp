// Run files: read, written, changed by --set, and every field of them wrong in turn.
#include "muster/parallel/run/run_file.h"

#include "muster/core/nn/models/mlp.h"
#include "muster/core/nn/multi_layer_network.h"
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
using Sets = std::vector<std::string>;

/// A run file with every field of this type of data, and with these fields set.
RunFile with(std::string_view type, const Sets& sets) {
  return RunFile::parse(whole(type).toJson(), sets);
}

/// As "averaging every=3", of a whole run file with these fields set.
std::string strategyWith(const Sets& sets) {
  const auto training = with("csv", sets).training;
  return training.strategy + " " + training.strategyOptions;
}

json::value networkWith(const Sets& sets) {
  return json::parse(with("generated", sets).network);
}

}  // namespace

TEST_CASE("each field of a run file that is invalid or unknown gives one line that names it") {
  int fields = 0;
  const std::string zero("a\0b", 3), noZero = "expected a text without NUL bytes, found \"a\\u0000b\"";
  for (const auto type : kDataTypes) {
    auto run = asJson(whole(type));
    REQUIRE(problem(run) == "");
    eachField(run, "", [&](const std::string& path, const std::string& key, json::object& in) {
      CAPTURE(path);
      ++fields;
      const json::value right = in.at(key);
      in[key] = wrong(right);
      auto text = problem(run);
      CHECK(text != "");
      CHECK(text.find('\n') == std::string::npos);
      CHECK_CONTAINS(text, key);
      if (path.starts_with("training.strategy."))
        CHECK_CONTAINS(text, path);
      else
        CHECK_MESSAGE(text.starts_with(path), text);
      in[key] = zero;  // where the system would end a path
      if (right.is_string()) CHECK(problem(run) == path + ": " + noZero);
      in[key] = right;
      if (type != "csv" || path == "training.strategy.name") return;  // all else beside that name are options
      in[key + "x"] = right;
      text = problem(run);
      in.erase(key + "x");
      CHECK_CONTAINS(text, key + "x");
      CHECK_CONTAINS(text, "nearest is " + key);
    });
    CHECK(problem(run) == "");
    run.as_object()["data"].as_object()[zero] = 1;
    CHECK(problem(run) == "a field in data: " + noZero);
  }
  CHECK(fields > 9 * 100);
  CHECK(problem(asJson(whole("csv")), {"training.model=\"a\\u0000b\""})
            .starts_with("training.model: expected"));
}

TEST_CASE("values out of range are refused, and the error names their path") {
  const auto run = asJson(whole("csv"));
  CHECK_REFUSED(RunFile::parse(" \n"), "it is empty; a run file has data and a network");
  for (const auto* const tab : {"\t", "\\t", "tab"})
    CHECK(DataSource{.separator = tab}.tableFormat().separator == '\t');
  const std::pair<const char*, const char*> cases[] = {
      {"format=muster-run/2", "format: this program reads \"muster-run/1\", found \"muster-run/2\""},
      {"data.type=mnits", "data.type: there is no \"mnits\"; the nearest is mnist, of mnist, "},
      {"data.type=imagenet", "data.type: there is no \"imagenet\"; the nearest is images, of mnist, "},
      {"data.separator=ab", "data.separator must be one character, or tab, got \"ab\""},
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
      {"listeners.earlyStopping.monitor=acc",
       "listeners.earlyStopping.monitor: there is no \"acc\"; the nearest is accuracy, of accuracy, loss, "
       "r2, auc, f1, trainingScore"},
      {"listeners.earlyStopping.monitor=owns",
       "listeners.earlyStopping.monitor: there is no \"owns\"; there are accuracy, "},
      {"listeners.earlyStopping.monitor=own",
       "listeners.earlyStopping.monitor: own is for programs; there are accuracy, "},
      {"network.updater=0.1", "network.updater: expected an object, found 0.1"},
      {"compare.foo=1", "compare.foo: there is no such field"},
      {"compare.testEvery=often", "compare.testEvery: expected a whole number"},
  };
  for (const auto& [set, begin] : cases) {
    const auto text = problem(run, {set});
    CHECK_MESSAGE(text.starts_with(begin), set, ": ", text);
  }
  const auto drawn = asJson(whole("generated"));
  CHECK(problem(drawn, {"data.directory=d"}).starts_with("data.directory: there is no such field"));
  CHECK(problem(drawn, {"data.trainExamples=-1"}).starts_with("data.trainExamples must be between 0 and "));
}

TEST_CASE("of two --set of the same field the later one wins, also if one of them sets it with others") {
  CHECK(with("csv", {"training.workers=3", "training.workers=5"}).training.workers == 5);
  CHECK(with("csv", {"training.workers=0", "training.workers=5"}).training.workers == 5);
  const std::string object = R"(training.strategy={"name": "averaging", "every": 7})",
                    data = R"(data={"type": "fashion", "batch": 4})", named = "training.strategy.name=";
  for (const auto& [sets, strategy] :
       {std::pair<Sets, const char*>{{object, "training.strategy.every=5"}, "averaging every=5"},
        {{"training.strategy.every=5", object}, "averaging every=7"},
        {{object, named + "diloco"}, "diloco "},
        {{named + "diloco", object}, "averaging every=7"},
        // What belongs to a strategy may be set before its name.
        {{"training.strategy.every=9", named + "diloco"}, "diloco every=9"},
        {{"training.strategy.rate=0.5", named + "slowmo"}, "slowmo rate=0.5"},
        {{"training.strategy=diloco"}, "diloco "},
        {{R"(training.strategy={"name": "diloco"})", "training.strategy.rate=0.5",
          "training.strategy.every=7"},
         "diloco rate=0.5,every=7"},
        {{"training.strategy=10"}, "averaging every=10"},
        {{"training.strategy=10", "training.strategy.updaterState=keep"},
         "averaging every=10,updaterState=keep"}})
    CHECK(strategyWith(sets) == strategy);
  CHECK(strategyWith({named + "averaging"}) == strategyWith({}));
  CHECK_LACKS(strategyWith({"training.strategy.every=null"}), "every=");
  for (const auto& [sets, type] : {std::pair<Sets, const char*>{{data, "data.type=mnist"}, "mnist"},
                                   {{"data.type=mnist", data}, "fashion"},
                                   {{"data.type=mnist", "data.type=fashion"}, "fashion"}})
    CHECK(with("generated", sets).data.type == type);
  CHECK(with("generated", {"data.directory=d", "data.type=mnist"}).data.directory == "d");
  // Another type of data drops all fields of the old one.
  for (const auto* const type : {"fashion", "idx", "csv", "images", "safetensors"})
    CHECK(with(type, {"data.type=mixtures"}).data.type == "mixtures");
  const Sets qsr{"training.strategy.period=qsr", "training.strategy.period.alpha=0.25"};
  CHECK(with("csv", qsr).makeStrategy(1).make() != nullptr);
}

TEST_CASE("short forms: an updater by name, a learning rate as 0.01, a listener by one field") {
  CHECK(with("csv", {"training.epochs=2.0", "training.workers=3e0"}).training.epochs == 2);
  Sets adam{"network.updater=adam", "network.updater.learningRate=0.01"};
  CHECK(networkWith(adam).at("updater").at("type") == "adam");
  CHECK(networkWith(adam).at("updater").at("learningRate") == 0.01);
  adam.emplace_back("network.updater.learningRate.value=0.5");
  CHECK(networkWith(adam).at_pointer("/updater/learningRate/value") == 0.5);
  const auto listeners = with("csv", {"listeners.earlyStopping=7", "listeners.earlyStopping.monitor=auc",
                                      "listeners.reduceOnPlateau=4", "listeners.checkpoints=d",
                                      "listeners.checkpoints.best=accuracy"})
                             .listeners;
  CHECK(listeners.earlyStopping->patience == 7);
  CHECK(listeners.reduceOnPlateau->patience == 4);
  CHECK(listeners.checkpoints->directory == "d");
  CHECK((listeners.checkpoints->best->monitor == Monitor::Accuracy));
  auto flat = json::parse(mlp({8}, 3).toJson());
  flat.as_object()["inputShape"] = 784;
  CHECK(MultiLayerConfiguration::fromJson(json::serialize(flat)).inputShape == Shape{784});

  const test::JsonSchema schema(json::parse(runFileSchema()));
  auto run = asJson(whole("generated"));
  for (const char* set :
       {"listeners.earlyStopping=7", "listeners.reduceOnPlateau=4", "listeners.checkpoints=d",
        "training.strategy=10", "training.strategy=diloco", "network.inputShape=784", "network.updater=adam",
        "training.epochs=2", R"(network.updater={"type": "sgd", "learningRate": 0.01})"}) {
    detail::applyOverride(run.as_object(), set);
    CHECK(schema.problem(run) == "");
  }
  detail::applyOverride(run.as_object(), "listeners.earlyStopping=often");
  CHECK(schema.problem(run) != "");
  CHECK(problem(run).starts_with("listeners.earlyStopping.patience: expected a whole number, found"));
  detail::applyOverride(run.as_object(), "listeners.earlyStopping=5");
  detail::applyOverride(run.as_object(), "network.updater=[1]");
  CHECK(schema.problem(run) != "");
}

TEST_CASE("an override that is to blame for an error is told from the file, and from other overrides") {
  auto run = asJson(whole("generated"));
  const auto blamed = [&](const Sets& sets) {
    try {
      RunFile::parse(json::serialize(run), sets);
    } catch (const detail::OverrideError& error) {
      return fmt::format("{}: {}", error.index(), sets[error.index()]);
    } catch (const InvalidArgument&) {
      return std::string("the file");
    }
    return std::string("none");
  };
  CHECK(blamed({"training.workers=2"}) == "none");
  CHECK(blamed({"training.epochs=2", "training.workers=0", "data.batch=4"}) == "1: training.workers=0");
  CHECK(blamed({"workers"}) == "0: workers");
  CHECK(blamed({"training.workers=0", "training.workers=0", "training.epochs=2"}) == "1: training.workers=0");
  // Each of the two is needed for the problem; it is with the field of the second.
  const std::string momentum = "network.updater.momentum=0.5", adam = "network.updater.type=adam";
  CHECK(blamed({adam, momentum}) == "1: " + momentum);
  CHECK(blamed({momentum, adam}) == "0: " + momentum);
  const std::string wrong = "network.layers[99].bias=true";
  for (const auto& sets : {Sets{wrong, "training.workers=2", "data.type=mnist"},
                           {"data.type=mnist", "training.workers=2", wrong}})
    CHECK(problem(run, sets) == "network.layers[99].bias: layers has no element 99");
  CHECK(problem(run, {"training.workers=2", "training.groups=0"}).starts_with("training.groups"));
  CHECK(problem(run, {"training.=2"}).starts_with("training.: expected a path"));

  run.at("training").as_object()["workers"] = 0;
  CHECK(blamed({"training.epochs=2"}) == "the file");
  CHECK(blamed({"training.workers=2"}) == "none");
  // Without the batch there is another problem, but both are of the file.
  run.at("data").as_object()["batch"] = 0;
  CHECK(blamed({"data.batch=4"}) == "the file");
  CHECK(blamed({"data.batch=4", "training.workers=-1"}) == "1: training.workers=-1");
}

TEST_CASE("--set changes any field, with commas in lists, or takes it out by null") {
  const std::tuple<Sets, const char*, const char*> cases[] = {
      {{"training.workers=4"}, "/training/workers", "4"},
      {{"data.label=kind"}, "/data/label", R"("kind")"},
      {{R"(data.label="3")"}, "/data/label", R"("3")"},
      {{"data.label=3"}, "/data/label", R"("3")"},
      {{"data.label=a,b"}, "/data/label", R"("a,b")"},
      {{R"(data.label="1,2")"}, "/data/label", R"("1,2")"},
      {{R"(training.devices="cpu")"}, "/training/devices", R"("cpu")"},
      {{"data.train=2024"}, "/data/train", R"("2024")"},
      {{"training.model=1.50"}, "/training/model", R"("1.50")"},
      {{"data.classWeights=[2, 3.5]"}, "/data/classWeights", "[2.0, 3.5]"},
      {{"data.classWeights=2,3.5"}, "/data/classWeights", "[2.0, 3.5]"},
      {{R"(data.classWeights={"rare": 5})"}, "/data/classWeights", R"({"rare": 5.0})"},
      {{"data.classWeights=null", "data.classWeights.rare=5"}, "/data/classWeights", R"({"rare": 5.0})"},
      {{"data.columns=a,b c,3"}, "/data/columns", R"(["a", "b c", "3"])"},
      {{"data.columns=7"}, "/data/columns", R"(["7"])"},
      {{R"(data.columns=["a,b","c"])"}, "/data/columns", R"(["a,b", "c"])"},
      {{R"(data.columns="a, b",c)"}, "/data/columns", R"(["a, b", "c"])"},
      {{"data.leaveOut=id"}, "/data/leaveOut", R"(["id"])"},
      {{"network.layers[0].outChannels=7"}, "/network/layers/0/outChannels", "7"},
      {{"network.layers[0].kernel=3,5"}, "/network/layers/0/kernel", "[3, 5]"},
  };
  for (const auto& [sets, pointer, value] : cases) {
    CAPTURE(sets.back());
    CHECK(asJson(with("csv", sets)).at_pointer(pointer) == json::parse(value));
  }
  CHECK(with("csv", {"data.columns=a", "data.columns=null"}).data.columns.empty());
  const auto listeners = [](const Sets& sets) { return with("csv", sets).listeners; };
  CHECK_FALSE(listeners({"listeners.checkpoints=null"}).checkpoints);
  CHECK_FALSE(listeners({"listeners.checkpoints.best=null"}).checkpoints->best);
  CHECK_FALSE(
      listeners({"listeners.earlyStopping=null", "listeners.reduceOnPlateau.factor=null"}).reduceOnPlateau);
  CHECK(listeners({"listeners.checkpoints=null", "listeners.checkpoints=d"}).checkpoints->keepLast == 0);
  CHECK(listeners({"listeners=null", "listeners.checkpoints.best=null"}).testEvery == 0);
  CHECK(with("csv", {"data.classWeights=null", "training=null"}).training.workers == 1);
}

TEST_CASE("--set adds a field that is missing, and refuses an invalid path") {
  auto bare = json::object{{"format", "muster-run/1"},
                           {"data", json::object{{"type", "generated"}}},
                           {"network", json::parse(convnet().toJson())}};
  const Sets stop{"listeners.earlyStopping.monitor=accuracy", "listeners.earlyStopping.mode=max"};
  const auto stopped = RunFile::parse(json::serialize(bare), stop);
  REQUIRE(stopped.listeners.earlyStopping);
  CHECK(stopped.listeners.earlyStopping->patience == 5);
  CHECK(stopped.training.workers == 1);
  const std::string none = "a run file has no field ", stopping = "listeners.earlyStop";
  for (const auto& [set, error] :
       {std::pair<std::string, std::string>{"workers",
                                            "workers: expected KEY=VALUE, as in training.workers=4"},
        {"training.model=\xff.st", "training.model=\xff.st: expected UTF-8, as in all of a run file"},
        {"data.type.name=1", "data.type.name: type is no object"},
        {"data.type=null", "data.type: is missing"},
        {"data.colums=null", none + "data.colums; the nearest is data.columns"},
        {stopping + "ing.patience=null",
         none + stopping + "ing.patience; the nearest is " + stopping + "ping.patience"},
        {"network.layers[99].bias=1", "network.layers[99].bias: layers has no element 99"},
        {"network.vertices[1].units=4",
         "network.vertices[1].units: there is no list vertices; there is inputShape, layers"},
        {"data.columns[0]=4", "data.columns[0]: columns has no element 0"},
        {"data.classWeights[0]=4", "data.classWeights[0]: classWeights has no element 0"},
        {"data.rows[0]=4", "data.rows[0]: rows has no element 0"},
        {"compare.arms[0]=4", "compare.arms[0]: arms has no element 0"},
        // A name alone is refused with the path of the field that is meant.
        {"lr=0.1", none + "lr; the nearest is network.updater.learningRate"},
        {"updater.momentum=0.5", none + "updater.momentum; the nearest is network.updater.momentum"},
        {"workers=2", none + "workers; the nearest is training.workers"},
        {"epoch=2", none + "epoch; the nearest is training.epochs"},
        {"listener.curves=a", none + "listener.curves; the nearest is listeners.curves"},
        {"networks.l1=1", none + "networks.l1; the nearest is network.l1"},
        {"dat=1", none + "dat; the nearest is data"},
        {"zigzag=1",
         none + "zigzag; there are format, data, network, training, listeners, compare, $schema"}})
    CHECK(problem(bare, {set}) == error);
  bare["network"] = json::object{{"name", "mlp"}};
  CHECK(problem(bare, {"network.hidden[0]=4"}) == "network.hidden[0]: hidden has no element 0");
}

TEST_CASE("another schedule, layer or named network drops the fields of the old one") {
  const std::string rate = "network.updater.learningRate";
  const json::object tenEpochs{{"type", "cosine"}, {"epochs", 10}};
  for (const std::string old : {"0.5", R"({"type": "step", "initial": 0.5, "every": 7})"})
    CHECK(networkWith({rate + "=" + old, rate + ".epochs=10", rate + ".type=cosine"})
              .at_pointer("/updater/learningRate") == tenEpochs);
  CHECK(networkWith({"network.layers[0].type=batchnorm"}).at("layers").at(0) ==
        json::object{{"type", "batchnorm"}});
  const auto named = networkWith({R"(network={"name": "resnet18", "width": 4})", "network.name=mlp"});
  CHECK(named.at("name") == "mlp");
  CHECK(named.at("hidden").as_array().empty());
  // A part of the updater that the library gives a network.
  const auto slow = networkWith({"network=resnet18", rate + "=0.01"}).at("updater");
  CHECK(slow.at("type") == "nesterovs");
  CHECK(slow.at("momentum") == 0.9);
  CHECK(slow.at("learningRate").at("value") == 0.01);
  CHECK(problem(asJson(whole("generated")), {rate + "=fast"}) ==
        rate +
            ": expected a number, or a schedule as in {\"type\": \"cosine\", \"initial\": 0.1, \"epochs\": "
            "10}, "
            "found the string \"fast\"");
}

TEST_CASE("fields are listed by path with their values, defaults and the types of data that have them") {
  for (const auto& [path, values, preset] :
       {std::tuple("training.workers", "whole number, at least 1, at most 1024", "1"),
        {"training.mathMode", "auto, fp32, tf32, bf16", "\"auto\""},
        {"data.classWeights", "list of numbers or numbers by name", ""},
        {"data.label", "text or whole number, at least 1", ""}}) {
    CHECK(detail::fieldAt(path).values == values);
    if (*preset != '\0') CHECK(detail::fieldAt(path).preset == preset);
  }
  CHECK(detail::fieldAt("listeners.checkpoints.best.monitor").values.starts_with("accuracy, loss"));
  CHECK(detail::fieldAt("data.type").preset.empty());
  CHECK(detail::fieldAt("data.label").description.starts_with("of csv: column to predict"));
  CHECK(detail::fieldAt("data.train").description.starts_with("of csv, images, safetensors: the file"));
  CHECK(detail::fieldAt("data.batch").description == "examples in a batch of one worker");
  CHECK_THROWS_AS(detail::fieldAt("training.worker"), std::out_of_range);
}

TEST_CASE("a run file is written and read back, and a results file gives its configuration") {
  for (const auto type : kDataTypes) {
    const auto run = whole(type);
    CHECK(with(type, {}).toJson() == run.toJson());
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

TEST_CASE("the guide's page about run files is that of the program") {
  // To make it again: muster schema --markdown > examples/docs/run_file.md
  CHECK(test::readFile(MUSTER_RUN_FILE_PAGE) == detail::runFilePage());
}
