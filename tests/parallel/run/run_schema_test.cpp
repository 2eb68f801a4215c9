// The schema of run files, beside what the program takes and refuses.
#include "muster/parallel/run/run_schema.h"

#include "muster/core/base/comma_list.h"
#include "muster/core/nn/models/char_lstm.h"
#include "muster/core/nn/models/lenet.h"
#include "muster/core/nn/models/mlp.h"
#include "muster/core/nn/models/resnet18.h"
#include "muster/core/nn/multi_layer_network.h"
#include "muster/core/optim/schedules.h"
#include "muster/core/optim/updaters.h"
#include "muster/parallel/run/detail/run_overrides.h"
#include "muster/parallel/run/named_networks.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "tests/parallel/run/whole_runs.h"
#include "tests/support/json_schema.h"

namespace {

using namespace muster;
using test::asJson, test::eachField, test::graphWith, test::layerTypes, test::problem, test::thrown,
    test::typesIn, test::whole, test::withNetwork, test::wrong;
namespace json = boost::json;

/// A run file with `graphWith`, whose layer has sizes that its type could have.
json::value sized(json::value run) {
  auto& network = run.at("network").as_object();
  auto& layer = network.at("vertices").at(0).as_object();
  const auto type = layer.at("type").as_string();
  for (const auto* const size : {"units", "outChannels", "vocabulary", "features", "to"})
    if (layer.contains(size)) layer[size] = 2;
  if (type == "output") layer["loss"] = "mse";
  if (type == "reshape") layer["shape"] = {2, 2};
  if (type == "merge" || type == "combine") layer["inputs"] = {"in", "in"};
  for (const auto& shape : {json::array{4}, json::array{2, 8}, json::array{2, 8, 8}}) {
    network.at("inputs").at(0).as_object()["shape"] = shape;
    if (problem(run) == "") break;
  }
  return run;
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

bool hasOneOf(const json::object& schema, std::initializer_list<std::string_view> keywords) {
  return std::ranges::any_of(keywords, [&](std::string_view one) { return schema.contains(one); });
}

/// Each word that an option of a strategy may be, those that this strategy refuses, too.
std::vector<std::pair<std::string, std::string>> optionsOfWords(const std::string& strategy) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& option : optionsOf(strategyNamed(strategy, "", 1))) {
    const auto refusal = thrown<InvalidArgument>([&] { strategyNamed(strategy, option.name + "=?", 1); });
    constexpr std::string_view kBefore = "there is no type \"?\"; there are ";
    const auto types = refusal.find(kBefore);
    auto words = types == refusal.npos ? option.kind : refusal.substr(types + kBefore.size());
    const auto last = words.find(" or ");
    if (types == refusal.npos && (last == words.npos || words == "true or false")) continue;
    if (last != words.npos) words.replace(last, 4, ",");
    for (const auto word : commaList(words))
      all.emplace_back(option.name, word.substr(word.find_first_not_of(' ')));
  }
  return all;
}

/// Whether an object with this schema needs a field, as far as this schema says it: parts of a network have
/// those that say which part it is.
bool isRequired(std::string_view field, const json::value& schema) {
  const auto* const required = schema.as_object().if_contains("required");
  if (required && std::ranges::find(required->as_array(), json::value(field)) != required->as_array().end())
    return true;
  constexpr std::string_view kParts[] = {"type", "name", "format", "vertex", "inputs", "$schema"};
  return std::ranges::find(kParts, field) != std::end(kParts);
}

}  // namespace

TEST_CASE("the schema has the options of each strategy, with their types in run files") {
  const auto schema = json::parse(runFileSchema());
  const test::JsonSchema checks(schema);
  const auto& strategy = schema.at_pointer("/properties/training/properties/strategy/anyOf/0");
  const auto& rules = strategy.at("allOf").as_array();
  REQUIRE(rules.size() == strategy.at_pointer("/properties/name/enum").as_array().size());
  for (const auto& rule : rules) {
    const auto& name = rule.at_pointer("/if/properties/name/const").as_string();
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
       schema.at_pointer("/properties/training/properties/strategy/anyOf/0/allOf").as_array()) {
    const auto& name = rule.at("if").at("properties").at("name").at("const").as_string();
    const auto all = optionsOfWords(std::string(name));
    std::set<std::pair<std::string, std::string>> taken;  // alone or with another word
    for (const auto& [option, word] : all)
      for (const auto& [other, with] : all) {
        if (option == other && word != with) continue;
        const json::object options{{"name", name}, {option, word}, {other, with}};
        CAPTURE(json::serialize(options));
        const bool valid = strategy(options) == "";
        CHECK(valid == (problem(run) == ""));
        if (valid) taken.emplace(option, word);
      }
    for (const auto& [option, values] : rule.at("then").at("properties").as_object()) {
      CAPTURE(std::string(option));
      const auto* const words = values.as_object().if_contains("enum");
      if (!words) continue;
      for (const auto& word : words->as_array()) {
        CAPTURE(json::serialize(word));
        CHECK(taken.erase({std::string(option), std::string(word.as_string())}) == 1);
      }
    }
    CHECK(taken.empty());
  }
  for (const auto& options :
       {json::object{{"every", 3}, {"period", "qsr"}, {"period.alpha", 0.2}},
        {{"name", "asynchronous"}, {"speeds", json::array{1, 0.5}}, {"staleness", 2}},
        {{"name", "gossip"}, {"graph", "ring"}, {"codec", "top-k"}, {"codec.share", 0.1}},
        {{"name", "hierarchical"}, {"levels", "4:2,16:all"}}})
    CHECK_MESSAGE(strategy(options) == "", json::serialize(options));
  CHECK(strategy({{"evry", 3}}) == "/training/strategy: unknown field evry");
  CHECK(strategy({{"name", "diloco"}, {"codec.shore", 1}}) ==
        "/training/strategy: unknown field codec.shore");
  CHECK(strategy({{"codec", 7}}).starts_with("/training/strategy/codec: is none of "));
  CHECK(strategy({{"updaterState", "keeps"}}) ==
        R"(/training/strategy/updaterState: is none of ["average","keep","reset"])");
  CHECK(strategy({{"name", "easgd"}, {"elasticity", true}})
            .starts_with("/training/strategy/elasticity: is no "));
  for (const auto& options : {json::object{{"name", "easgd"}, {"elasticity", "much"}},
                              {{"name", "easgd"}, {"elasticity", 2}},
                              {{"name", "asynchronous"}, {"staleness", 1.5}},
                              {{"name", "asynchronous"}, {"staleness", "some"}},
                              {{"name", "asynchronous"}, {"speeds", "fast"}},
                              {{"name", "asynchronous"}, {"speeds", {1, 0}}},
                              {{"codec.share", 0.1}},
                              {{"period", "adacomm"}, {"period.alpha", 0.1}},
                              {{"name", "shared"}, {"threshold.density", 0.1}},
                              {{"name", "gossip"}, {"graph", "ring"}, {"codec.share", 0.1}},
                              {{"name", "hierarchical"}, {"levels", 4}},
                              {{"name", "hierarchical"}, {"levels", "4,16:all"}}}) {
    CAPTURE(json::serialize(options));
    CHECK(strategy(options) != "");
    CHECK(problem(run) != "");
  }
}

/// Calls `visit` for each number of a run file, alone or in a list, below a path.
void eachNumber(json::value& run, std::string_view below, const auto& visit) {
  eachField(run, "", [&](const std::string& path, const std::string& key, json::object& in) {
    auto& value = in.at(key);
    const bool list = value.is_array() && !value.get_array().empty();
    auto& number = list ? value.get_array().front() : value;
    if (path.starts_with(below) && number.is_number()) visit(path, number);
  });
}

TEST_CASE(
    "the program refuses each number that the schema refuses, and the schema each negative one that it "
    "does") {
  const test::JsonSchema checks(json::parse(runFileSchema()));
  int refused = 0, numbers = 0;
  const auto agree = [&](json::value run, std::string_view below) {
    CAPTURE(json::serialize(run));
    REQUIRE(checks.problem(run) == "");
    REQUIRE(problem(run) == "");
    eachNumber(run, below, [&](const std::string& path, json::value& number) {
      const auto right = number;
      ++numbers;
      for (const double value :
           {-2., -.5, 0., .5, 1., 1.5, 33., 257., 70000., 3e6, 1e8 + 1, 2e9, 2e12, 1e31}) {
        const bool whole = value == std::floor(value) && value < 1e18;
        if (!whole && !right.is_double()) continue;
        number = whole ? json::value(static_cast<std::int64_t>(value)) : json::value(value);
        const bool valid = checks.problem(run) == "";
        if (valid && value >= 0) continue;  // the program may refuse it beside other fields
        CAPTURE(path);
        CAPTURE(value);
        CHECK(valid == (problem(run) == ""));
        refused += valid ? 0 : 1;
      }
      number = right;
    });
  };
  for (const auto type : kDataTypes) agree(asJson(whole(type)), "data");
  auto run = asJson(whole("mnist"));
  run.at("listeners").as_object()["reduceOnPlateau"] =
      json::parse(R"({"factor": 0.5, "patience": 3, "minImprovement": 0.0, "minFactor": 0.0})");
  run.as_object()["compare"] =
      json::parse(R"({"seeds": [1, 2], "testEvery": 100, "target": 97.5, "link": "10Gbit,50us"})");
  for (const auto* const part : {"training.", "listeners.", "compare.", "network."}) agree(run, part);
  const auto agreeOn = [&](const std::string& strategy, const std::string& options) {
    auto named = whole("mnist");
    named.training.workers = 2;
    named.training.strategy = strategy;
    named.training.strategyOptions = options;
    agree(asJson(named), "training.strategy.");
  };
  for (const auto& strategy : namedStrategies(2)) agreeOn(strategy.name, "");
  for (const auto* const options : {"period=qsr,codec=top-k,landing=pull", "period=adacomm,codec=power-sgd"})
    agreeOn("overlapped", options);
  for (const auto* const options : {"threshold=fixed", "threshold=target"}) agreeOn("shared", options);
  for (const auto& name : networkNames()) {
    auto named = whole("mnist");
    named.network = withAllOptions("\"" + name + "\"");
    agree(asJson(named), "network.");
  }
  for (const auto& type : layerTypes()) agree(sized(withNetwork(graphWith(type))), "network.vertices");
  auto network = mlp({8}, 3);
  for (const auto& type : typesIn(std::type_identity<LibraryUpdaters>())) {
    network.updater = Updater::named(type, 0.5);
    agree(withNetwork(network), "network.updater");
  }
  for (const Schedule& schedule : {Schedule(StepSchedule{}), Schedule(ExponentialSchedule{}),
                                   Schedule(CosineSchedule{}), Schedule(WarmUpSchedule{})}) {
    network.updater = Adam{.learningRate = schedule};
    agree(withNetwork(network), "network.updater.learningRate");
  }
  for (const Init& init : {Init::normal(0.1), Init::uniform(0.1), Init::constant(0.5)}) {
    network.layers.front() = Dense{.units = 3, .init = init};
    agree(withNetwork(network), "network.layers");
  }
  CHECK(numbers > 400);
  CHECK(refused > 1500);
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
        {"training.nodes=many", "/training/nodes: is none of "},
        {"training.model=", "/training/model: too short"},
        {"listeners.curves=c", "/listeners/curves: does not match "},
        {"listeners.checkpoints.directory=", "/listeners/checkpoints/directory: too short"},
        {"listeners.checkpoints={}", "/listeners/checkpoints: has no \"directory\""},
        {"network.layers=[]", "/network/layers: too short"},
        {"network.updater.learningRate=-1", "/network/updater/learningRate: is no "},
        {"network.updater=\"adma\"", "/network/updater: "},
        {"compare.foo=1", "/compare: unknown field foo"},
        {"compare.seeds=[1,1]", "/compare/seeds: has 1 twice"},
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

TEST_CASE("run files of all models, layers, schedules and inits satisfy the schema") {
  // Those of all data types, strategies and updaters do in the case of the numbers.
  const test::JsonSchema schema(json::parse(runFileSchema()));
  for (auto run : {withNetwork(convnet()), withNetwork(lenet(10)), withNetwork(mlp({8}, 3)),
                   withNetwork(charLstm(32)), withNetwork(resnet18(10))}) {
    run.as_object()["$schema"] = "run.schema.json";  // by which an editor finds it
    CHECK(schema.problem(run) == "");
    CHECK(problem(run) == "");
  }
  auto chain = withNetwork(convnet());
  for (const auto& type : layerTypes()) {
    CAPTURE(type);
    auto layer = sized(withNetwork(graphWith(type))).at("network").at("vertices").at(0).as_object();
    const bool oneInput = layer.at("inputs").as_array().size() == 1;
    for (const auto* own : {"vertex", "inputs"}) layer.erase(own);
    chain.at("network").as_object()["layers"] = json::array{layer};
    CHECK((schema.problem(chain) == "") == oneInput);
  }
  auto network = mlp({8}, 3);
  network.updater = Adam{.learningRate = WarmUpSchedule{.then = WarmUpSchedule{.then = CosineSchedule{}}}};
  CHECK(schema.problem(withNetwork(network)) == "");
  for (const Init& init : {Init::xavier(), Init::he(), Init::zero()}) {
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

TEST_CASE(
    "a field of a wrong type, an unknown one and an invalid network are refused by schema and program") {
  const test::JsonSchema schema(json::parse(runFileSchema()));
  int fields = 0;
  const auto everyField = [&](json::value run, std::string_view below) {
    REQUIRE(problem(run) == "");
    eachField(run, "", [&](const std::string& path, const std::string& key, json::object& in) {
      if (!path.starts_with(below)) return;
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
  for (const auto type : kDataTypes) everyField(asJson(whole(type)), type == "mnist" ? "" : "data.");
  everyField(withNetwork(resnet18(10)), "network.");
  auto slow = mlp({8}, 3);
  slow.updater = AdamW{.learningRate = WarmUpSchedule{.then = StepSchedule{}}};
  everyField(withNetwork(slow), "network.");
  CHECK(fields > 300);

  const auto chain = withNetwork(convnet()), graph = withNetwork(resnet18(10));
  const std::string layer = "/network/layers/0", vertex = "/network/vertices/1", updater = "/network/updater";
  const std::tuple<const json::value*, std::string, json::value, std::string> cases[] = {
      {&chain, layer + "/type", "covn2d", layer + "/type: is none of "},
      {&chain, layer, {{"type", "combine"}}, layer + "/type: is none of "},
      {&chain, layer, {{"units", 3}}, layer + ": has no \"type\""},
      {&chain, layer + "/kernel", {5}, layer + "/kernel: too short"},
      {&chain, layer + "/kernel", {5, 5, 5}, layer + "/kernel: too long"},
      {&chain, layer + "/units", 3, layer + ": unknown field units"},
      {&chain, layer + "/activation", "rleu", layer + "/activation: is none of "},
      {&chain, updater + "/type", "adma", updater + "/type: is none of "},
      {&chain, updater + "/beta1", 0.5, updater + ": unknown field beta1"},
      {&chain, updater + "/learningRate", true, updater + "/learningRate: is no \"object\""},
      {&chain, "/network/seed", -1, "/network/seed: too small"},
      {&chain, "/network/version", 2, "/network/version: is not 1"},
      {&chain, "/network/format", "muster.Chain", "/network/format: is none of "},
      {&chain, "/network/vertices", json::array(), "/network: unknown field vertices"},
      {&graph, "/network/inputShape", {1}, "/network: unknown field inputShape"},
      {&graph, vertex, {{"type", "flatten"}, {"vertex", "a"}}, vertex + ": has no \"inputs\""}};
  for (const auto& [valid, pointer, value, begin] : cases) {
    CAPTURE(pointer);
    auto run = *valid;
    const auto slash = pointer.rfind('/');
    boost::system::error_code none;
    auto& in = *run.find_pointer(pointer.substr(0, slash), none);
    const auto last = pointer.substr(slash + 1);
    (in.is_array() ? in.get_array().at(std::stoul(last)) : in.get_object()[last]) = value;
    CHECK(problem(run) != "");
    CHECK(schema.problem(run).starts_with(begin));
  }
  for (const auto* name : {"format", "version", "layers"}) {
    auto less = chain;
    less.as_object()["network"].as_object().erase(name);
    CHECK(problem(less) != "");
    CHECK(schema.problem(less) == fmt::format("/network: has no \"{}\"", name));
  }
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
      if (keyword == "if" || keyword == "default" || keyword == "dependentSchemas") continue;
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
          CHECK(hasOneOf(field.as_object(), {"type", "enum", "const", "anyOf", "$ref"}));
          CHECK((hasOneOf(field.as_object(), {"default", "const"}) || isRequired(name, schema) ||
                 std::string_view(text->as_string()).find("left out: ") != std::string_view::npos ||
                 field.as_object().contains("properties")));
          ++described;
        }
        walk(field, at);
      }
    }
  };
  walk(json::parse(runFileSchema()), "");
  CHECK(described > 300);
}
