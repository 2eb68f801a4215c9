// Data described as in a run file: read, checked, and loaded as iterators.
#include "muster/datasets/source/data_source.h"

#include <fmt/ranges.h>

#include <numeric>
#include <set>

#include "muster/core/data/split.h"
#include "muster/core/io/safetensors.h"
#include "muster/datasets/gaussian_mixtures.h"
#include "muster/datasets/image_set_iterator.h"
#include "muster/datasets/source/load_data.h"
#include "muster/datasets/source/named_images.h"
#include "tests/datasets/idx_bytes.h"
#include "tests/support/batch_of.h"
#include "tests/support/log_lines.h"
#include "tests/support/png.h"
#include "tests/support/test.h"

namespace muster {
namespace {

using test::thrown;

/// Twelve rows that begin with what `row` gives, of the classes a and b by turns.
std::string twelve(const std::string& header, const std::function<std::string(int)>& row) {
  std::string text = header + ",kind\n";
  for (int i = 0; i < 12; ++i) text += row(i) + (i % 2 == 0 ? ",a\n" : ",b\n");
  return text;
}

/// Different rows: two numbers, and the class a or b by turns.
std::string rowsFrom(int first, int end) {
  std::string rows;
  for (int i = first; i < end; ++i)
    rows += fmt::format("{},{},{}\n", 7 * i % 1009, i, i % 2 == 0 ? "a" : "b");
  return rows;
}

const std::string kHeader = "x,y,kind\n";

/// Files in a directory of their own, loaded as tables.
struct Tables {
  test::TemporaryDirectory directory;

  std::string write(const std::string& name, const std::string& text) const {
    test::writeFile(directory / name, text);
    return (directory / name).string();
  }
  /// @param known  of a model by whose description the rows are read.
  LoadedData load(const std::string& text, DataSource source = {}, const InputDescription& known = {}) const {
    source.type = "csv";
    source.train = write("rows.csv", text);
    return loadData(source, PlacementWish::Host, std::array{Device::cpu()}, 1, known);
  }
  /// Of rows.csv, with more fields in JSON.
  DataSource parsed(std::string_view more) const {
    const auto source = DataSource::parse(R"({"type": "csv", "train": ")" +
                                          (directory / "rows.csv").string() + "\"" + std::string(more) + "}");
    CHECK(DataSource::parse(source.toJson()).toJson() == source.toJson());
    return source;
  }
};

TEST_CASE("a table described in JSON is loaded, and the rows that are held out are not trained on") {
  const Tables tables;
  tables.write("rows.csv", twelve("size,colour", [](int i) {
                 return fmt::format("{},{}", 0.5 * i * i, i % 3 == 0 ? "red" : "blue");
               }));
  const auto source =
      tables.parsed(R"(, "leaveOut": ["colour"], "validationExamples": 4, "batch": 3, "shuffle": false)");
  CHECK(source.label.empty());  // the last column
  const auto data = loadData(source);
  CHECK(data.train->examples() == 8);
  CHECK(data.validation->examples() == 4);
  CHECK(data.test == nullptr);
  CHECK(data.description.classes == std::vector<std::string>{"a", "b"});
  CHECK(data.description.columns.size() == 1);
}

TEST_CASE("class weights are given by name or in order, and a label's column by its number") {
  const Tables tables;
  std::string rows = "size,kind\n";
  for (int i = 0; i < 12; ++i) rows += fmt::format("{},{}\n", 0.5 * i * i, i % 4 == 0 ? "rare" : "often");
  tables.write("rows.csv", rows);
  const auto named = tables.parsed(R"(, "classWeights": {"rare": 5}, "label": 2)");
  CHECK(named.label == "2");
  const auto data = loadData(named);
  CHECK(data.classWeights == std::vector<float>{1, 5});
  CHECK(data.weighted != nullptr);
  CHECK(classWeightsLine(data) == "class weights: often 1, rare 5");
  CHECK(classWeightsLine(loadData(tables.parsed(R"(, "classWeights": [2, 3])"))) ==
        "class weights: often 2, rare 3");
  for (const char* none : {"", R"(, "classWeights": {})"}) {
    const auto plain = loadData(tables.parsed(none));
    CHECK(classWeightsLine(plain).empty());
    CHECK(plain.weighted == nullptr);
  }
  for (const auto& [more, problem] :
       {std::pair(R"({"raer": 5})", "data.classWeights: there is no class \"raer\"; there are often, rare"),
        {R"({"rare": 5, " rare": 2})", "data.classWeights: class \"rare\" has two weights"},
        {R"({"rare": -1})", "data.classWeights.rare must be finite and not negative, got -1"},
        {R"({"rare": "5"})", "classWeights.rare: expected a number"},
        {R"({"rare": 5}, "label": "size", "regression": true)",
         "data.classWeights: these data have no classes with names"},
        {R"([], "label": 2.5)", "label: expected a string"}})
    CHECK_CONTAINS(thrown<InvalidArgument>(
                       [&] { loadData(tables.parsed(fmt::format(R"(, "classWeights": {})", more))); }),
                   problem);
}

TEST_CASE("words that a model does not know are counted in the rows that are wanted") {
  const Tables tables;
  std::string rows = "size,colour,kind\n", tested = rows;
  for (int i = 0; i < 80; ++i)  // every fourth word is there once
    rows += fmt::format("{},{},{}\n", 0.5 * i * i, i % 4 == 3 ? fmt::format("w{}", i) : "red",
                        i % 2 == 0 ? "a" : "b");
  for (int i = 0; i < 9; ++i) tested += fmt::format("{},gold,{}\n", 0.5 * i, i < 7 ? "a" : "");
  const DataSource source{.type = "csv",
                          .train = tables.write("rows.csv", rows),
                          .test = tables.write("test.csv", tested),
                          .validationExamples = 30};
  const auto known = loadData(source).description;
  std::int64_t held = 0;
  const auto logged = [&](std::string_view part) {
    const test::LogLines log;
    const auto data = loadData(source, PlacementWish::Host, std::array{Device::cpu()}, 1, known, part);
    held = std::ranges::count_if(data.rows.validation, [](std::int64_t row) { return row % 4 == 3; });
    std::string lines;
    for (const auto& line : log.all())
      if (const auto at = line.find(" for which"); at != line.npos) lines += line.substr(0, at) + "\n";
    return lines;
  };
  const auto line = [](std::int64_t count) {
    return fmt::format("column colour: {} rows have words\n", count);
  };
  const std::string ofTest = "column colour: 7 rows have a word\n";  // two have no label
  CHECK(logged("") == line(20) + ofTest);
  CHECK(logged("validation") == line(held));
  CHECK((held > 1 && held < 19));
  CHECK(logged("train") == line(20 - held));
  CHECK(logged("test") == ofTest);
}

TEST_CASE("columns that a model has left out are neither asked for nor compared") {
  const Tables tables;
  const auto load = [&](const std::string& header, const std::function<std::string(int)>& row,
                        const InputDescription& known = {}, const std::vector<std::string>& leaveOut = {}) {
    return tables.load(twelve(header, row), {.leaveOut = leaveOut}, known).description;
  };
  const auto counted = [](int i) { return fmt::format("{},{},{}", i + 1, 0.5 * (i % 4), i % 3); };
  const auto known = load("id,size,age", counted);
  REQUIRE(known.omitted == std::vector<OmittedColumn>{{"id", "its whole numbers count the rows"}});
  // These numbers do not count the rows, and all sizes are equal.
  const auto later = [](int i) { return fmt::format("{},7,{}", 100 + 7 * i, i % 3); };
  const auto without = [](int i) { return fmt::format("7,{}", i % 3); };
  CHECK(load("id,size,age", later, known) == known);
  CHECK(load("size,age", without, known) == known);
  CHECK(load("size,age", without, known, {"id"}) == known);
  const auto ranked = [](int i) { return fmt::format("{},{},{}", i, i == 0 ? "" : "0.5", i % 4); };
  const auto squares = load("id,age,size", [](int i) { return fmt::format("{},{},{}", i, i * i, i % 3); });
  CHECK(load("id,age,size", ranked, squares).columns.front().quantiles.size() == 12);
  CHECK_CONTAINS(thrown<FileError>([&] { load("size,age", without, {}, {"id"}); }), "has no column \"id\"");
  CHECK_CONTAINS(thrown<InvalidArgument>([&] { load("more,size,age", later, known); }),
                 "column 1 is more in ");
}

TEST_CASE("rows by a model's description are compared with what the model learned") {
  const Tables tables;
  const auto load = [&](const std::string& header, const std::function<std::string(int)>& row,
                        const InputDescription& known, const DataSource& source = {}) {
    return tables.load(twelve(header, row), source, known).description;
  };
  const InputDescription towns{
      .columns = {{.name = "city", .kind = ColumnKind::Words, .words = {"Bonn", "Rome"}}, {.name = "size"}},
      .omitted = {{"id", "its whole numbers count the rows"}},
      .label = "kind",
      .classes = {"a", "b"}};
  const auto cities = [](int i) { return fmt::format("{},{}", i % 3 == 0 ? "Rome" : "Bonn", 0.5 * (i % 4)); };
  CHECK(load("city,size", cities, towns) == towns);
  // Words that became numbers, which count the rows, are another column.
  const auto counted = [](int i) { return fmt::format("{},{}", i + 1, 0.5 * (i % 4)); };
  CHECK_CONTAINS(thrown<InvalidArgument>([&] { load("city,size", counted, towns); }), "column 1 is size in ");
  // A column that the model left out is not compared where the source names it either.
  CHECK(load("id,city,size", [&](int i) { return fmt::format("{},{}", 7 * i % 5, cities(i)); }, towns,
             {.columns = {"id", "city", "size"}}) == towns);

  // Dates that were words to an older model are words.
  InputDescription days = towns;
  days.columns[0].words = {"3-May-2020", "4-May-2020"};
  const auto dates = [](int i) { return fmt::format("{}-May-2020,{}", 3 + i % 2, 0.5 * (i % 4)); };
  CHECK(load("city,size", dates, days) == days);

  days.columns[0] = {.name = "city", .kind = ColumnKind::Date, .order = DateOrder::MonthDayYear};
  const auto numbers = [](int i) { return fmt::format("{}/5/2020,{}", 3 + i % 2, 0.5 * (i % 4)); };
  days.columns[0].separators = ".";  // and the rows have others
  CHECK_CONTAINS(thrown<FileError>([&] { load("city,size", numbers, days); }),
                 "no date with \"/\" says which");
  InputDescription any = days;
  any.columns[0].separators = "-./";
  CHECK(load("city,size", numbers, days, {.dateOrder = "monthDayYear"}) == any);
  CHECK(loadTestData({.type = "csv",
                      .train = "rows.csv",
                      .test = tables.write("rows.csv", twelve("city,size", numbers)),
                      .dateOrder = "monthDayYear"},
                     days)
            ->description == any);
  CHECK_REFUSED(load("city,size", numbers, days, {.columns = {"size"}}),
                "data.columns does not name column city, from which the model has learned");
  CHECK_REFUSED(load("city,size", numbers, days, {.leaveOut = {"city"}}),
                "data.leaveOut names column city, from which the model has learned");
  CHECK_REFUSED(
      load("city,size", numbers, days, {.dateOrder = "dayMonthYear"}),
      "data.dateOrder is dayMonthYear, and the model reads the dates of column city as monthDayYear");
  CHECK(load("city,size", numbers, {}, {.dateOrder = "dayMonthYear"}).columns.front().order ==
        DateOrder::DayMonthYear);
  CHECK(load("city,size", numbers, {}).columns.front().order == DateOrder::MonthDayYear);  // found out
}

TEST_CASE("words among the numbers of rows that are held out are told") {
  const Tables tables;
  const auto rows = [](std::int64_t stray) {
    std::string text = "size,kind\n";
    for (int i = 0; i < 40; ++i)
      text += fmt::format("{},{}\n", i == stray ? "lost" : fmt::format("{}", 0.5 * (i % 7)),
                          i % 2 == 0 ? "a" : "b");
    return text;
  };
  const DataSource source{.validationExamples = 10};
  const auto held =
      tables.load(rows(-1), source).rows.validation.front();  // its line has the header before it
  const test::LogLines log;
  tables.load(rows(held), source);
  CHECK(log.all() == std::vector<std::string>{fmt::format(
                         "warning: column size: 1 row has a word where it has numbers, as if the number were "
                         "missing: \"lost\" in line {}",
                         held + 2)});
}

TEST_CASE("a field of a data source that is unknown, missing or out of range is named") {
  for (const auto& [json, problem] :
       {std::pair(R"({"type": "csv", "train": "a.csv", "colums": []})", "columns"),
        {R"({"type": "csv"})", "data.train: is missing, and data of type csv need it"},
        {R"({"type": "mnist", "batch": 0})", "data.batch must be between 1 and 65536, got 0"},
        {"{}", "type"},
        {R"({"type": "csv", "train": "a.csv", "dateOrder": "dayFirst"})",
         "dateOrder: there is no \"dayFirst\"; there are auto, monthDayYear, dayMonthYear"}})
    CHECK_CONTAINS(thrown<InvalidArgument>([&] { DataSource::parse(json); }), problem);
  CHECK_REFUSED((DataSource{.type = "csv", .train = "a.csv", .dateOrder = "dayMonthYaer"}.validate()),
                "data.dateOrder: there is no order \"dayMonthYaer\"; the nearest is dayMonthYear, of auto, "
                "monthDayYear, dayMonthYear");
  CHECK_REFUSED(loadData({.type = "minst"}),
                "data.type: there is no type \"minst\"; the nearest is mnist, of mnist, fashion, kmnist, "
                "cifar10, mnistOrGenerated, generated, mixtures, idx, csv, images, safetensors");
}

TEST_CASE(
    "the examples of mixtures depend on seed and part alone, and a longer set begins with a shorter one") {
  const auto few = gaussianMixtures(7, true, 50), more = gaussianMixtures(7, true, 4000);
  const auto other = gaussianMixtures(8, true, 50), test = gaussianMixtures(7, false, 50);
  int same = 0;
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < 50; ++i) {
    CHECK(few->label(i) == more->label(i));
    CHECK(std::ranges::equal(few->image(i), more->image(i)));
    for (const auto& set : {other, test}) same += std::ranges::equal(few->image(i), set->image(i));
  }
  CHECK(same == 0);
  for (const double pixel : more->pixels()) {
    sum += pixel;
    squares += pixel * pixel;
  }
  const double count = 4000.0 * 128, mean = sum / count;
  // Mean 127.5; deviation 36 sqrt(1 + 0.35^2) = 38.1. The centres' mean of 32 x 128 has an error of
  // 36 * 0.35 / 64 = 0.2.
  CHECK(std::abs(mean - 127.5) < 1);
  CHECK(std::abs(std::sqrt(squares / count - mean * mean) - 38.14) < 1);
}

TEST_CASE("the contents of data change with each example, their order and parts, and with nothing else") {
  const Tables tables;
  const std::string all = kHeader + rowsFrom(0, 12'000);
  const DataContents known = tables.load(all, {.validationExamples = 20}).contents;
  CHECK(known.training.examples == 12'000);
  CHECK(known.test == ExampleContents{});

  CHECK(
      tables.load(all, {.validationExamples = 20, .splitSeed = 123, .batch = 7, .dropLast = true, .seed = 9})
          .contents.training == known.training);
  const auto tested = tables.write("test.csv", kHeader + rowsFrom(0, 5));
  const DataContents with = tables.load(all, {.test = tested, .validationExamples = 20}).contents;
  CHECK(with.training == known.training);
  CHECK(with.test.examples == 5);
  const auto parsed = DataContents::parse(with.toJson());
  CHECK(parsed.training == with.training);
  CHECK(parsed.test == with.test);
  const auto split = tables.load(all, {.validationExamples = 20, .seed = 9}).contents.training;
  CHECK(split.ordered != known.training.ordered);  // other rows are held out
  CHECK(split.unordered == known.training.unordered);

  auto edited = all;
  edited.replace(edited.rfind(",a\n"), 2, ",b");  // row 11,998
  const auto label = tables.load(edited, {.validationExamples = 20}).contents.training;
  CHECK(label.examples == 12'000);
  CHECK(label.unordered != known.training.unordered);
  const auto moved = tables.load(kHeader + rowsFrom(6000, 12'000) + rowsFrom(0, 6000)).contents.training;
  const auto whole = tables.load(all).contents.training;
  CHECK(moved.unordered == whole.unordered);
  CHECK(moved.ordered != whole.ordered);
  CHECK(tables.load(all + "1,1,a\n").contents.training.examples == 12'001);
}

TEST_CASE("examples have the numbers that they have in their file") {
  const Tables tables;
  std::string rows = kHeader + "1,2,\n" + rowsFrom(0, 30);  // the first row has no label
  const auto data = tables.load(
      rows, {.test = tables.write("test.csv", kHeader + "1,1,a\n1,2,\n1,3,b\n"), .validationExamples = 6});
  CHECK(data.rows.train.size() == 24);
  CHECK(data.rows.validation.size() == 6);
  CHECK(data.rows.test == std::vector<std::int64_t>{0, 2});
  std::vector<std::int64_t> held = data.rows.train;
  held.insert(held.end(), data.rows.validation.begin(), data.rows.validation.end());
  std::ranges::sort(held);
  std::vector<std::int64_t> labelled(30);
  std::iota(labelled.begin(), labelled.end(), 1);
  CHECK(held == labelled);
  Batch batch;
  data.validation->reset(0);
  REQUIRE(data.validation->next(batch));
  const auto labels = batch.labels.front().gathered();
  for (std::size_t i = 0; i < 6; ++i)  // row r is number r - 1, of class a if that is even
    CHECK(labels.span<std::int64_t>()[i] == (data.rows.validation[i] - 1) % 2);

  const DataSource drawn{
      .type = "mixtures", .trainExamples = 40, .testExamples = 10, .validationExamples = 8};
  const auto images = loadData(drawn);
  const auto set = gaussianMixtures(kDrawingSeed, true, 40);
  images.validation->reset(0);
  REQUIRE(images.validation->next(batch));
  REQUIRE(images.rows.validation.size() == 8);
  for (std::size_t i = 0; i < 8; ++i)
    CHECK(batch.labels.front().value.span<std::int64_t>()[i] == set->label(images.rows.validation[i]));
  CHECK(images.rows.test.size() == 10);
}

TEST_CASE("files of IDX and safetensors, of CIFAR-10 and of pictures are read, with their classes' names") {
  const test::TemporaryDirectory directory;
  const auto read = [&](std::string json) {
    for (std::size_t at = 0; (at = json.find("DIR", at)) != json.npos;)
      json.replace(at, 3, directory.path().string());
    const auto data = loadData(DataSource::parse(json));
    Batch batch;
    data.test->reset(0);
    REQUIRE(data.test->next(batch));
    const auto labels = batch.labels.front().gathered();
    return fmt::format("{}, {}: {} of {}", data.train->examples().value(), data.test->examples().value(),
                       fmt::join(labels.span<std::int64_t>(), ""), fmt::join(data.description.classes, " "));
  };
  Safetensors rows;
  rows.add("features", Tensor::of({-1, 1, -2, 2}, {4, 1}));
  rows.add("labels", test::integers({0, 1, 0, 1}));
  writeSafetensors(directory / "rows.st", rows);
  CHECK(read(R"({"type": "safetensors", "train": "DIR/rows.st", "test": "DIR/rows.st"})") ==
        "4, 4: 0101 of ");

  test::writeFile(directory / "images", test::idx({4, 1, 2}, std::string("\0\0\xff\0\0\xff\xff\0", 8)));
  test::writeFile(directory / "labels", test::idx({4}, {'\0', '\1', '\2', '\1'}));
  CHECK(read(R"({"type": "idx", "trainImages": "DIR/images", "trainLabels": "DIR/labels",
                 "testImages": "DIR/images", "testLabels": "DIR/labels", "classes": 3})") ==
        "4, 4: 0121 of 0 1 2");

  for (const std::string name :
       {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"}) {
    const auto file = directory / (name + ".bin");
    test::writeFile(file, "");
    std::filesystem::resize_file(file, 10000 * 3073);
  }  // zeros: black images of class 0, an airplane
  CHECK(read(R"({"type": "cifar10", "directory": "DIR", "trainExamples": 16, "testExamples": 8})") ==
        "16, 8: 00000000 of airplane automobile bird cat deer dog frog horse ship truck");

  for (const std::string name : {"p/dark/1.png", "p/dark/2.png", "p/light/1.png"}) {
    std::filesystem::create_directories((directory / name).parent_path());
    test::writePng(directory / name, std::vector<std::uint8_t>(4 * 6, name.starts_with("p/dark") ? 10 : 240),
                   6, 4);
  }
  CHECK(read(R"({"type": "images", "train": "DIR/p", "test": "DIR/p", "grey": true})") ==
        "3, 3: 001 of dark light");
  const auto pictures = (directory / "p").string();
  const auto data = loadData({.type = "images", .train = pictures, .test = pictures});
  CHECK(fmt::format("{}", fmt::join(data.files, " ")) == "dark/1.png dark/2.png light/1.png");
  CHECK(data.testFiles == data.files);
  CHECK(loadTestData({.type = "images", .test = pictures}, data.description)->testFiles == data.files);
}

/// A safetensors file of six sequences of three steps, of classes by turns, changed by `change`.
struct SequenceFile {
  explicit SequenceFile(const std::function<void(Safetensors&)>& change = {}) {
    Safetensors file;
    file.add("features", Tensor::zeros({6, 3, 2}));
    file.add("labels", test::integers({0, 1, 0, 1, 0, 1}));
    if (change) change(file);
    writeSafetensors(path, file);
  }
  LoadedData load(const std::string& test = {}) const {
    return loadData(
        {.type = "safetensors", .train = path.string(), .test = test, .batch = 4, .shuffle = false});
  }
  std::string refusal() const {
    const auto text = thrown<FileError>([&] { load(); });
    CHECK_CONTAINS(text, path.string());
    return text;
  }
  test::TemporaryDirectory directory;
  std::filesystem::path path = directory / "rows.safetensors";
};

TEST_CASE("a tensor of a safetensors file that is not read is an error that names it") {
  for (const std::string name : {"mask", "features.mask", "Labels"})
    CHECK_CONTAINS(
        SequenceFile([&](Safetensors& file) {
          file.add(name, Tensor::zeros({6, 3}));
        }).refusal(),
        "has a tensor called " + name +
            ", float32 [6, 3] on cpu, which is not read; those that are read are features, labels, "
            "featuresMask, labelsMask");
  CHECK_CONTAINS(SequenceFile([](Safetensors& file) { file.tensors.pop_back(); }).refusal(),
                 "has no tensor called labels");
  CHECK_CONTAINS(SequenceFile([](Safetensors& file) {
                   file.tensors.back().values = test::integers({0, 1});
                 }).refusal(),
                 "features float32 [6, 3, 2] on cpu and labels int64 [2] on cpu differ in their number");
  CHECK_CONTAINS(SequenceFile([](Safetensors& file) {
                   file.tensors.front().values = Tensor::zeros({6, 3, 2}, DType::Float64);
                 }).refusal(),
                 "features have to be float32, uint8 or int64 [N, ...], got float64 [6, 3, 2]");
}

TEST_CASE("labels of a safetensors file are checked when they are read, but not those of weight 0") {
  const auto labelled = [](const std::vector<std::int64_t>& labels, const std::vector<float>& weights = {}) {
    return SequenceFile([&](Safetensors& file) {
      file.tensors.back().values = test::integers(labels, {6, std::ssize(labels) / 6});
      if (labels.size() == 6) file.tensors.back().values = test::integers(labels);
      if (weights.size() == 6) file.add("labelsMask", Tensor::of(weights, {6}));
      if (weights.size() == 18) file.add("featuresMask", Tensor::of(weights, {6, 3}));
    });
  };
  CHECK_CONTAINS(labelled({0, 1, 0, 1, -1, 1}).refusal(),
                 "the label of example 4 (counted from 0) is -1; classes are 0 and above");
  Batch batch;
  const auto ignored = labelled({0, 1, 0, 1, -1, 1}, {1, 1, 1, 1, 0, 1}).load();
  REQUIRE(ignored.train->next(batch));
  CHECK(std::ranges::count(batch.labels.front().value.span<std::int64_t>(), -1) == 0);  // no third class
  const auto largest = [&](const SequenceFile& file) {
    const auto data = file.load(file.path.string());
    REQUIRE(data.largestLabels.size() == 2);
    CHECK(data.largestLabels[1].file == file.path.string());
    return std::pair(data.largestLabels[0].label, data.largestLabels[0].example);
  };
  CHECK(largest(labelled({0, 1, 4, 1, 4, 1})) == std::pair<std::int64_t, std::int64_t>(4, 2));
  CHECK(largest(labelled({0, 1, 4, 1, -1, 3}, {1, 1, 0, 1, 0, 1})) ==
        std::pair<std::int64_t, std::int64_t>(3, 5));
  std::vector<std::int64_t> steps(18, 1);
  std::vector<float> real(18, 1);
  steps[17] = -1;
  CHECK_CONTAINS(labelled(steps).refusal(), "the label of example 5 (counted from 0) is -1");
  real[17] = 0;
  CHECK(largest(labelled(steps, real)) == std::pair<std::int64_t, std::int64_t>(1, 0));
}

TEST_CASE("values of a safetensors file that are not finite are refused, except padding and weight 0") {
  // The features of example 4, step 1, and label 3.
  const auto with = [](float feature, float label, const std::string& mask = {}) {
    return SequenceFile([&](Safetensors& file) {
      file.tensors.front().values.at(4, 1, 1) = feature;
      file.tensors.back().values = Tensor::of({1, 2, 3, label, 5, 6}, {6});
      Tensor weights = Tensor::of({1, 1, 1, 0, 1, 1}, {6});
      if (mask == "featuresMask")
        weights = Tensor::of(std::vector<float>(18, 1), {6, 3}), weights.at(4, 1) = 0;
      if (!mask.empty()) file.add(mask, weights);
    });
  };
  CHECK_CONTAINS(with(NAN, 4).refusal(),
                 "the features hold nan: example 4, position [1, 1], counted from 0; ");
  CHECK_CONTAINS(with(NAN, 4, "labelsMask").refusal(), "the features hold nan: example 4");
  CHECK_CONTAINS(with(0, -INFINITY).refusal(), "the labels hold -inf: example 3, column 0, counted from 0; ");
  CHECK_CONTAINS(with(0, NAN, "featuresMask").refusal(), "the labels hold nan: example 3");
  for (const auto& file : {with(NAN, 4, "featuresMask"), with(0, NAN, "labelsMask")}) {
    Batch first, second;  // of four
    const auto data = file.load();
    REQUIRE(data.train->next(first));
    REQUIRE(data.train->next(second));
    CHECK(second.features.front().value.at(0, 1, 1) == 0);
    CHECK(std::isfinite(first.labels.front().value.at(3, 0)));
  }
}

TEST_CASE("a safetensors file without examples or with a mask of zeros is refused by its name") {
  CHECK_CONTAINS(
      SequenceFile([](Safetensors& file) { file.add("labelsMask", Tensor::zeros({6})); }).refusal(),
      "labelsMask is 0 everywhere, so no label counts");
  CHECK_CONTAINS(SequenceFile([](Safetensors& file) {
                   file.tensors = {{"features", Tensor::zeros({0, 3})}, {"labels", Tensor::zeros({0, 1})}};
                 }).refusal(),
                 ": has no examples");
}

TEST_CASE("class weights that do not fit the labels of a file are refused with both numbers") {
  const auto refusal = [](const Tensor& labels, const std::vector<double>& weights) {
    const SequenceFile file([&](Safetensors& into) { into.tensors.back().values = labels; });
    return thrown<InvalidArgument>(
        [&] { loadData({.type = "safetensors", .train = file.path.string(), .classWeights = weights}); });
  };
  const auto classes = test::integers({0, 1, 0, 2, 0, 1});
  CHECK(refusal(classes, {1, 2, 3}) == "");
  CHECK(refusal(classes, {1, 2, 3, 4}) == "");  // the network may have a class more
  CHECK_CONTAINS(refusal(classes, {1, 2}), "data.classWeights has 2 weights, and ");
  CHECK_CONTAINS(refusal(classes, {1, 2}),
                 " has classes from 0 to 2, the label of example 3 (counted from 0); ");
  CHECK(refusal(Tensor::zeros({6, 3}), {1, 2, 3}) == "");
  CHECK_CONTAINS(refusal(Tensor::zeros({6, 3}), {1, 2}), " are float32 [6, 3] on cpu; weights are for ");
  const Tables tables;
  CHECK_REFUSED(tables.load(kHeader + rowsFrom(0, 9), {.classWeights = {1, 2, 3}}),
                "data.classWeights: there are 3 weights for 2 classes");
}

TEST_CASE("numbers [N] to predict are read from a safetensors file as [N, 1]") {
  const auto data = SequenceFile([](Safetensors& file) {
                      file.tensors.back().values = Tensor::of({1, 2, 3, 4, 5, 6}, {6});
                    }).load();
  Batch batch;
  data.train->reset(0);
  REQUIRE(data.train->next(batch));
  CHECK(batch.labels.front().value.shape() == Shape{4, 1});
  CHECK(batch.labels.front().value.at(3, 0) == 4);
}

TEST_CASE("the masks of a safetensors file are those of its batches, and are checked") {
  const auto masked = [](const std::string& name, const Shape& shape, float value) {
    return [=](Safetensors& file) {
      Tensor mask = Tensor::zeros(shape);
      mask.span<float>().back() = value;
      file.add(name, mask);
    };
  };
  const auto one = masked("featuresMask", {6, 3}, 1), other = masked("labelsMask", {6}, 0.5f);
  const SequenceFile both([&](Safetensors& file) { one(file), other(file); });
  const auto data = both.load(both.path.string());
  for (DataSetIterator* const part : {data.train.get(), data.test.get()}) {
    Batch batch;
    part->reset(0);
    for (const std::int64_t size : {4, 2}) {
      REQUIRE(part->next(batch));
      REQUIRE(batch.masks.size() == 2);
      REQUIRE(batch.sequenceMask() != nullptr);
      CHECK(batch.sequenceMask()->shape() == Shape{size, 3});
      CHECK(batch.sequenceMask()->at(size - 1, 2) == (size == 2 ? 1 : 0));
      CHECK(batch.lossMask({size, 2}).at(size - 1) == (size == 2 ? 0.5f : 0));
    }
  }
  CHECK(data.contents.training != SequenceFile(one).load().contents.training);
  const SequenceFile plain;
  CHECK_CONTAINS(test::thrown<InvalidArgument>([&] { both.load(plain.path.string()); }),
                 "data.test: only " + both.path.string() + " has a featuresMask");

  for (const auto& [change, problem] :
       {std::pair(masked("featuresMask", {6, 2}, 1),
                  "featuresMask has to be float32 [6, 3], got float32 [6, 2]"),
        {masked("labelsMask", {6, 3}, 1), "labelsMask has to be float32 [6], got float32 [6, 3]"},
        {masked("featuresMask", {6, 3}, 0.5f),
         "featuresMask of example 5 (counted from 0) is 0.5; it has to be 1 for a real step or 0 for "
         "padding"},
        {masked("labelsMask", {6}, -1),
         "labelsMask of example 5 (counted from 0) is -1; it has to be finite and at least 0"}})
    CHECK_CONTAINS(SequenceFile(change).refusal(), problem);
  CHECK_CONTAINS(SequenceFile([&](Safetensors& file) {
                   file.tensors.front().values = Tensor::zeros({6, 3});
                   one(file);
                 }).refusal(),
                 "featuresMask is for sequences [N, T, F] or int64 [N, T], and features are float32 [6, 3]");
}

/// All features of an iterator, in its order.
std::vector<float> featuresOf(DataSetIterator& data) {
  std::vector<float> all;
  Batch batch;
  data.reset(0);
  while (data.next(batch)) {
    const auto features = batch.features.front().gathered();
    const auto values = features.span<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST_CASE("tensors and images are held out as splitAt divides them, first for the test") {
  const test::TemporaryDirectory directory;
  const LabelledTensors all{Tensor::empty({20}), Tensor::empty({20}, DType::Int64)};
  for (std::int64_t i = 0; i < 20; ++i) {
    all.features.data<float>()[i] = static_cast<float>(i);
    all.labels.data<std::int64_t>()[i] = i % 3;
  }
  Safetensors file;
  file.add("features", all.features);
  file.add("labels", all.labels);
  const auto path = directory / "rows.safetensors";
  writeSafetensors(path, file);
  const DataSource source{.type = "safetensors",
                          .testExamples = 4,
                          .train = path.string(),
                          .validationExamples = 5,
                          .splitSeed = 7};
  const auto tensors = loadData(source);
  const auto [rest, tested] = splitAt(all.features, all.labels, 16, 7);
  const auto [trained, held] = splitAt(rest.features, rest.labels, 11, 7);
  const auto compare = [](DataSetIterator& data, const Tensor& expected, std::span<const std::int64_t> rows) {
    const auto features = featuresOf(data);
    CHECK(std::ranges::equal(features, expected.span<float>()));
    CHECK(std::ranges::equal(features, rows));  // number i is the feature i
  };
  compare(*tensors.test, tested.features, tensors.rows.test);
  compare(*tensors.validation, held.features, tensors.rows.validation);
  CHECK(tensors.rows.train.size() == 11);
  CHECK(tensors.contents.training.examples == 20);

  for (std::int64_t seed = 0; seed < 5; ++seed) {
    auto other = source;
    other.splitSeed = seed;
    const auto rows = loadData(other).rows;
    std::set<std::int64_t> each(rows.train.begin(), rows.train.end());
    each.insert(rows.validation.begin(), rows.validation.end());
    each.insert(rows.test.begin(), rows.test.end());
    CHECK(each.size() == 20);
  }

  const DataSource drawn{.type = "mixtures", .trainExamples = 40, .validationExamples = 8, .splitSeed = 7};
  const auto images = loadData(drawn);
  ImageSetIterator expected(splitAt(gaussianMixtures(kDrawingSeed, true, 40), 32, 7).second, 8);
  CHECK(featuresOf(*images.validation) == featuresOf(expected));
  const auto order = [](std::int64_t splitSeed) {  // is drawn by the other seed
    return featuresOf(*loadData({.type = "mixtures", .trainExamples = 40, .splitSeed = splitSeed}).train);
  };
  CHECK(order(7) == order(-1));
}

TEST_CASE(
    "classes without an example in a part that is held out are counted, with the number that has one of "
    "each") {
  const Tables tables;
  std::string text = "x,y,kind\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("{},{},{}\n", 7 * i % 1009, i, "abcde"[i % 5]);
  const auto warnings = [&](const DataSource& source) { return tables.load(text, source).heldOutWarnings; };
  using Texts = std::vector<std::string>;
  std::set<std::string> drawn;
  for (std::int64_t seed = 0; seed < 20; ++seed) {
    const auto found = warnings({.validationExamples = 4, .seed = seed});
    REQUIRE(found.size() == 1);
    CHECK(found[0].starts_with("1 of 5 classes has no validation row ("));
    CHECK(
        found[0].ends_with("), so the scores say nothing of it; data.validationExamples=5 has one of each"));
    drawn.insert(found[0]);
  }
  CHECK(drawn.size() == 5);
  CHECK(warnings({.validationExamples = 5}).empty());
  CHECK(warnings({}).empty());
  const auto both = warnings({.testExamples = 1, .validationExamples = 6});
  REQUIRE(both.size() == 1);
  CHECK(both[0].starts_with("4 of 5 classes have no test row ("));
  CHECK(both[0].ends_with(", ...), so the scores say nothing of them; data.testExamples=5 has one of each"));
  text += "1,1,rare\n2,1,rare\n3,1,\"a, one\"\n";  // single ones are named by another warning
  CHECK(
      warnings({.validationExamples = 10}) ==
      Texts{
          "1 of 7 classes has no validation row (rare), so the scores say nothing of it; it needs more rows "
          "of the rare classes"});
  CHECK(
      tables.load(text, {.label = "y", .regression = true, .validationExamples = 3}).heldOutWarnings.empty());
  const auto images = loadData({.type = "mixtures", .trainExamples = 60, .validationExamples = 2, .seed = 3});
  REQUIRE(images.heldOutWarnings.size() == 1);
  CHECK_CONTAINS(images.heldOutWarnings[0], " classes have no validation example (");
}

TEST_CASE("test examples that are training examples are named, but not those that chance makes") {
  const Tables tables;
  const auto warning = [&](const std::string& train, const std::string& test) {
    return tables.load(kHeader + train, {.test = tables.write("test.csv", kHeader + test)}).testWarning;
  };
  const auto files = fmt::format("(data.test {}, data.train {})", (tables.directory / "test.csv").string(),
                                 (tables.directory / "rows.csv").string());
  const auto rows = rowsFrom(0, 100);
  CHECK(warning(rows, rowsFrom(100, 150)).empty());
  CHECK(warning(rows, rowsFrom(99, 150)).empty());
  CHECK(warning(rows, rowsFrom(60, 110)) == "40 of 50 test rows are equal to training rows " + files +
                                                ", so the scores say too little of new rows");
  const std::string same =
      "the test rows are the training rows " + files + ", so the scores on them say nothing of new rows";
  CHECK(warning(rows, rows) == same);
  CHECK(warning(rows, rowsFrom(50, 100) + rowsFrom(0, 50)) == same);
  std::string few, more;  // of four different rows
  for (int i = 0; i < 80; ++i)
    (i < 60 ? few : more) += fmt::format("{},{},{}\n", i % 2, i % 3 % 2, i % 2 ? "a" : "b");
  CHECK(warning(few, more).empty());
  // Each training row was copied: the test has none twice, so it is not of so few different rows.
  const auto copied = rowsFrom(0, 100) + rowsFrom(0, 100);
  CHECK(warning(copied, rowsFrom(100, 200)).empty());
  CHECK_CONTAINS(warning(copied, rowsFrom(0, 80)), "80 of 80 test rows are equal to training rows");
  CHECK_CONTAINS(warning(copied, rowsFrom(40, 140)), "60 of 100 test rows are equal to training rows");
  // Six training rows of 50 different ones, none twice, and a test with all of these.
  std::string many;
  for (int i = 0; i < 10; ++i) many += rowsFrom(0, 50);
  CHECK(warning(rowsFrom(0, 6), many).empty());

  const auto both = tables.load(kHeader + rows, {.test = (tables.directory / "rows.csv").string()});
  CHECK_CONTAINS(both.testWarning, "the test rows are the training rows");
}

}  // namespace
}  // namespace muster
