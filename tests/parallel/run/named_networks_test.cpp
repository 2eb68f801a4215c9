// Networks of the library by their names.
#include "muster/parallel/run/named_networks.h"

#include <boost/json.hpp>

#include "muster/core/io/json_value.h"
#include "muster/core/io/network_json.h"
#include "muster/core/nn/network.h"
#include "muster/parallel/run/detail/named_network_schemas.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using test::thrown;

/// Pictures of 8x16 grey pixels in 4 classes.
LoadedData pictures() {
  return loadData(
      DataSource::parse(R"({"type": "mixtures", "trainExamples": 16, "testExamples": 4, "batch": 8})"));
}

/// Six rows of two numbers and a label: a class, or a number to predict.
LoadedData rows(const test::TemporaryDirectory& directory, bool regression) {
  std::string text = "height,width,label\n";
  for (int i = 0; i < 6; ++i) text += fmt::format("{},{},{}\n", i, i * i, i % 3);
  test::writeFile(directory / "rows.csv", text);
  return loadData(
      DataSource::parse(fmt::format(R"({{"type": "csv", "train": "{}", "regression": {}, "batch": 2}})",
                                    (directory / "rows.csv").string(), regression)));
}

std::int64_t parametersOf(std::string_view name, LoadedData& data) {
  const auto network = networkFromJson(configurationFor(name, data));
  Batch first;
  data.any().reset(0);
  REQUIRE(data.any().next(first));
  network->prepare(first);
  return network->parameterCount();
}

TEST_CASE("a name, or an object with a name, is a named network; a configuration is none") {
  CHECK(isNamedNetwork(R"("mlp")"));
  CHECK(isNamedNetwork(R"({"name": "mlp", "hidden": [5]})"));
  CHECK_FALSE(isNamedNetwork(R"({"layers": []})"));
  CHECK(networkNames() == std::vector<std::string>{"mlp", "convnet", "resnet18", "charLstm", "gpt"});
}

TEST_CASE("the data give a named network its inputs and outputs") {
  auto images = pictures();
  // Weights and biases of 8 * 16 inputs, 5 and 3 hidden units and 4 classes; and of a single hidden layer
  // of 64.
  CHECK(parametersOf(R"({"name": "mlp", "hidden": [5, 3]})", images) == 128 * 5 + 5 + 5 * 3 + 3 + 3 * 4 + 4);
  CHECK(parametersOf(R"("mlp")", images) == 128 * 64 + 64 + 64 * 4 + 4);
  // 3x3 convolutions of 2, 4, 8, 16 channels, 1x1 shortcuts, two numbers per channel of each normalisation.
  std::int64_t weights = 9 * 1 * 2 + 2 * 2 + 16 * 4 + 4;
  for (const std::int64_t c : {2, 4, 8, 16}) {
    const std::int64_t before = c == 2 ? 2 : c / 2;
    weights += 9 * before * c + 3 * 9 * c * c + 4 * 2 * c + (c == 2 ? 0 : before * c + 2 * c);
  }
  CHECK(parametersOf(R"({"name": "resnet18", "width": 2})", images) == weights);
  const test::TemporaryDirectory directory;
  auto numbers = rows(directory, true);
  CHECK(parametersOf(R"({"name": "mlp", "hidden": 7})", numbers) == 2 * 7 + 7 + 7 * 1 + 1);
  const auto predicts = parseJson(configurationFor(R"("mlp")", numbers));
  CHECK(predicts.at("layers").as_array().back().at("loss") == "mse");
  CHECK(predicts.at("layers").as_array().front().at("type") == "normalise");
  auto classes = rows(directory, false);
  CHECK(parametersOf(R"({"name": "mlp", "hidden": 7})", classes) == 2 * 7 + 7 + 7 * 3 + 3);
}

TEST_CASE("options of a named network are the given ones, and else their defaults") {
  const auto all = parseJson(withAllOptions(R"({"name": "resnet18", "width": 16, "l2": 0.5})"));
  CHECK(all.at("name") == "resnet18");
  CHECK(all.at("width") == 16);
  CHECK(all.at("l2") == 0.5);
  CHECK(all.at("seed") == 123);
  CHECK(all.at("updater").at("type") == "nesterovs");
  auto data = pictures();
  const auto configured = parseJson(configurationFor(
      R"({"name": "mlp", "seed": 9, "weightDecay": 0.25, "clipNorm": 2, "updater": "sgd"})", data));
  CHECK(configured.at("seed") == 9);
  CHECK(configured.at("weightDecay") == 0.25);
  CHECK(configured.at("clipNorm") == 2.0);
  CHECK(configured.at("updater").at("type") == "sgd");
}

TEST_CASE("the schema of a named network has its options, and a name alone will do") {
  const auto forms = detail::namedNetworkSchemas({});
  REQUIRE(forms.size() == 2);
  const auto& rules = forms[0].at("allOf").as_array();
  const auto& names = forms[1].at("enum").as_array();
  REQUIRE(names.size() == networkNames().size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto name = networkNames()[i];
    CHECK(names[i] == boost::json::value(name));
    CHECK(rules[i].at_pointer("/if/properties/name/const") == names[i]);
    const auto& described = rules[i].at_pointer("/then/properties").as_object();
    const auto written = parseJson(withAllOptions('"' + name + '"')).as_object();
    for (const auto& [option, value] : written)
      CHECK_MESSAGE(described.contains(option), std::string(option));
    CHECK(described.size() == written.size());
  }
}

TEST_CASE("a name, an option or data that do not fit are refused by name") {
  CHECK_REFUSED(
      checkNamedNetwork(R"("resnet19")"),
      "there is no network \"resnet19\"; the nearest is resnet18, of mlp, convnet, resnet18, charLstm, gpt");
  CHECK_CONTAINS(thrown<InvalidArgument>([] { checkNamedNetwork(R"({"name": "mlp", "hiden": 5})"); }),
                 "hiden: there is no such field; the nearest is hidden");
  CHECK_THROWS_AS(checkNamedNetwork(R"({"name": "gpt", "dropout": 1})"), InvalidArgument);
  CHECK_NOTHROW(checkNamedNetwork(R"({"name": "gpt", "dropout": 0.5})"));
  const test::TemporaryDirectory directory;
  auto table = rows(directory, false);
  for (const std::string name : {"convnet", "gpt"})
    CHECK(thrown<InvalidArgument>([&] {
            configurationFor("\"" + name + "\"", table);
          }).starts_with("network: " + name + " is for "));
}

}  // namespace
}  // namespace muster
