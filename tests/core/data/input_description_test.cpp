#include "muster/core/data/input_description.h"

#include <doctest/doctest.h>

#include "muster/core/base/error.h"
#include "muster/core/device/context.h"
#include "muster/core/io/model_file.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/thrown.h"

using namespace muster;

namespace {

using Names = std::vector<std::string>;

InputDescription flowers() {
  return {.format = {.header = false, .separator = '\t'},
          .columns = {{.name = "size", .filling = 2.5, .missing = true, .logScale = 0.25},
                      {.name = "colour", .kind = ColumnKind::Words, .words = {"blue", "red"}, .others = true},
                      {.name = "seen",
                       .kind = ColumnKind::Date,
                       .filling = 9000,
                       .order = DateOrder::DayMonthYear,
                       .year = true,
                       .week = true,
                       .day = true}},
          .omitted = {{"id", "every value differs"}},
          .label = "kind",
          .classes = {"a", "b"}};
}

MultiLayerConfiguration layers() {
  return {.inputShape = {18}, .layers = {Output{.classes = 2}}};
}

std::string difference(void (*change)(InputDescription&)) {
  auto other = flowers();
  change(other);
  return test::thrown<InvalidArgument>([&] { flowers().requireSame(other, "rows.csv", "the model"); });
}

}  // namespace

TEST_CASE("a column has one feature for each number, word and part of a date") {
  const auto names = flowers().featureNames();
  CHECK(Names(names.begin(), names.begin() + 6) ==
        Names{"size", "size (log)", "size (missing)", "colour=blue", "colour=red", "colour=(other)"});
  CHECK(names.size() == 3 + 3 + 12);  // days; year 2, week 7, day 2
  CHECK(flowers().features() == 18);
  for (const auto& column : flowers().columns) CHECK(column.features() == std::ssize(column.featureNames()));
}

TEST_CASE("a description is the same after it was written as JSON") {
  CHECK(InputDescription::fromJson(flowers().toJson()) == flowers());
  const InputDescription pictures{.pictures = PictureDescription{1, 28, 30}, .classes = {"cat", "dog"}};
  CHECK(InputDescription::fromJson(pictures.toJson()) == pictures);
  const InputDescription numbers{.columns = {{.name = "a"}}, .targets = {{"y", 3.5, 0.1}, {"z", -1, 2}}};
  CHECK(InputDescription::fromJson(numbers.toJson()) == numbers);
  CHECK(InputDescription().empty());
  CHECK(test::thrown<InvalidArgument>([] {
          InputDescription::fromJson(R"({"coluns": []})");
        }).find("the nearest is columns") != std::string::npos);
  CHECK(test::thrown<InvalidArgument>([] {
          InputDescription::fromJson(R"({"targets": [{"name": "y", "mean": 0, "scale": 0}]})");
        }) == "targets: the scale of y must be positive, got 0");
  CHECK(test::thrown<InvalidArgument>([] {
          InputDescription::fromJson(R"({"columns": [{"name": "c", "kind": "words", "words": ["b", "a"]}]})");
        }) == "columns: the words of c are not in order");
}

TEST_CASE("what differs is named; fillings and omitted columns may differ") {
  CHECK_NOTHROW(flowers().requireSame(flowers(), "rows.csv", "the model"));
  auto other = flowers();
  other.columns[0].filling = 7;
  other.omitted.clear();
  CHECK_NOTHROW(flowers().requireSame(other, "rows.csv", "the model"));
  CHECK(difference([](InputDescription& d) { d.classes[1] = "c"; }) ==
        "class 1 is b in rows.csv, and c in the model");
  CHECK(difference([](InputDescription& d) { d.classes.push_back("c"); }) ==
        "rows.csv has 2 classes (a, b), and the model has 3 (a, b, c)");
  CHECK(difference([](InputDescription& d) { d.label = "type"; }) ==
        "the column of the classes is kind in rows.csv, and type in the model");
  CHECK(difference([](InputDescription& d) { d.columns[0].name = "height"; }) ==
        "column 1 is size in rows.csv, and height in the model");
  CHECK(difference([](InputDescription& d) { d.columns.pop_back(); }) ==
        "column seen is in rows.csv, and not in the model");
  CHECK(difference([](InputDescription& d) { d.columns[0].kind = ColumnKind::Date; }) ==
        "column size holds number in rows.csv, and date in the model");
  CHECK(difference([](InputDescription& d) { d.columns[1].words = {"blue"}; }) ==
        "column colour has the words blue, red in rows.csv, and blue in the model");
  CHECK(difference([](InputDescription& d) { d.columns[0].missing = false; }) ==
        "column size has the features size, size (log), size (missing) in rows.csv, and size, size (log) in "
        "the model");
  CHECK(difference([](InputDescription& d) { d.targets.push_back({"y"}); }) ==
        "rows.csv has 0 numbers to predict, and the model has 1");
}

TEST_CASE("a network's description is in its copies, replicas and files") {
  test::TemporaryDirectory directory;
  MultiLayerNetwork model(layers());
  model.init();
  const auto plain = directory / "plain.safetensors", described = directory / "described.safetensors";
  model.save(plain);
  CHECK(Network::load(plain)->inputDescription().empty());
  model.setInputDescription(flowers());
  model.save(described);
  CHECK(Network::load(described)->inputDescription() == flowers());
  CHECK(readModelNotes(described).empty());
  CHECK(model.clone()->inputDescription() == flowers());
  Context context(Device::cpu());
  CHECK(dynamic_cast<Network&>(*model.replicate(context)).inputDescription() == flowers());
  model.init();
  CHECK(model.inputDescription() == flowers());

  MultiLayerNetwork other(layers());
  loadState(other, described);
  CHECK(other.inputDescription() == flowers());
  auto renamed = flowers();
  renamed.classes = {"b", "a"};
  other.setInputDescription(renamed);
  CHECK(test::thrown<FileError>([&] {
          loadState(other, described);
        }).ends_with("class 0 is a in the file, and b in the data here"));
  loadState(other, plain);
  CHECK(other.inputDescription() == renamed);

  const auto refused = [&](void (*change)(InputDescription&)) {
    auto changed = flowers();
    change(changed);
    other.setInputDescription(changed);
    return test::thrown<FileError>([&] { loadState(other, described); });
  };
  const std::string reason =
      " has another filling, scale or order of dates in the file than in the data here; read the data by "
      "the model's own description (Network::inputDescription, readInputDescription)";
  CHECK(refused([](InputDescription& d) { d.columns[0].filling = 7; }).ends_with("column size" + reason));
  CHECK(refused([](InputDescription& d) { d.columns[0].logScale = 2; }).ends_with("column size" + reason));
  CHECK(refused([](InputDescription& d) {
          d.columns[2].order = DateOrder::MonthDayYear;
        }).ends_with("column seen" + reason));
  auto same = flowers();
  same.omitted.clear();
  same.format.separator = ',';
  other.setInputDescription(same);
  loadState(other, described);
  CHECK(other.inputDescription() == flowers());
}

TEST_CASE("labels scaled by another mean are refused") {
  const test::TemporaryDirectory directory;
  MultiLayerNetwork model(
      {.inputShape = {1}, .layers = {Output{.units = 1, .loss = Loss::MeanSquaredError}}});
  model.init();
  model.setInputDescription({.columns = {{.name = "x"}}, .targets = {{"y", 100, 10}}});
  model.save(directory / "m");
  model.setInputDescription({.columns = {{.name = "x"}}, .targets = {{"y", 90, 10}}});
  CHECK(test::thrown<FileError>([&] { loadState(model, directory / "m"); })
            .ends_with("the number to predict, y, has another mean or scale in the file than in the data "
                       "here; read the data by the model's own description (Network::inputDescription, "
                       "readInputDescription)"));
  CHECK(model.inputDescription().targets.front().mean == 90);
}

TEST_CASE("a description that cannot be read is named, and no note takes its place") {
  const test::TemporaryDirectory directory;
  MultiLayerNetwork model(layers());
  model.init();
  CHECK(test::thrown<InvalidArgument>([&] {
          saveModel(model, directory / "m", {{"muster.input", "x"}});
        }) == "model file: a note cannot be named \"muster.input\"");
  model.setInputDescription({.columns = {{.name = "x"}}, .targets = {{"y", 0, 0}}});  // a scale of 0
  model.save(directory / "m");
  const std::string problem = (directory / "m").string() +
                              ": its input description cannot be used: targets: the scale of y must be "
                              "positive, got 0";
  CHECK(test::thrown<FileError>([&] { Network::load(directory / "m"); }) == problem);
  CHECK(test::thrown<FileError>([&] { readInputDescription(directory / "m"); }) == problem);
}
