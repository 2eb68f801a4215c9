// What a model's file says of the data of its training: which examples test it, which data it goes on with.
#include "muster/parallel/run/detail/saved_data.h"

#include <fmt/ranges.h>

#include "muster/parallel/run/prepared_run.h"
#include "tests/support/log_lines.h"
#include "tests/support/test.h"
#include "tests/support/working_directory.h"

namespace muster {
namespace {

using detail::chooseSplit;
using test::thrown;
using Texts = std::vector<std::string>;

/// Rows of different sizes, of the classes a and b by turns.
std::string rowsFrom(int first, int end) {
  std::string rows;
  for (int i = first; i < end; ++i) rows += fmt::format("{},{}\n", 0.5 * i * i, i % 2 == 0 ? "a" : "b");
  return rows;
}

const std::string kHeader = "size,kind\n";
const std::string kRows = kHeader + rowsFrom(0, 40), kMore = kHeader + rowsFrom(0, 41),
                  kTurned = kHeader + rowsFrom(20, 40) + rowsFrom(0, 20), kNew = kHeader + rowsFrom(100, 120);

/// The directory that a case works in, with tables and models of them.
class Tables : test::WorkingDirectory {
 public:
  Tables() { write("rows.csv", kRows); }

  static void write(const std::string& name, const std::string& text) { test::writeFile(name, text); }

  /// A run that holds out 10 of the 40 rows of rows.csv.
  static RunFile run(const Texts& sets = {}) {
    return RunFile::parse(R"({"format": "muster-run/1",
        "data": {"type": "csv", "train": "rows.csv", "validationExamples": 10}, "network": "mlp",
        "training": {"devices": "cpu"}, "listeners": {"progress": false}})",
                          sets);
  }
  static PreparedRun prepared(const Texts& sets) { return prepareRun(run(sets)); }
  /// The rows that a run with these fields has to use the model m with.
  static DataRows rows(const char* part, const Texts& sets) {
    auto chosen = run(sets);
    chooseSplit(chosen, "m", part, sets);
    return loadData(chosen.data).rows;
  }

  /// Saves a model as a training of this run would, but untrained.
  static void save(const std::string& model, const Texts& sets = {}) {
    const auto p = prepared(sets);
    saveModel(*p.network, model, detail::notesOf(p.run, p.data));
  }
};

TEST_CASE(
    "a training resumes only what its data held, in whichever file, but their model may begin another") {
  const Tables tables;
  const std::string moved = "data.train=moved.csv", tested = "data.test=test.csv",
                    resume = "training.resume=m";
  tables.write("moved.csv", kRows);
  tables.write("test.csv", kNew);
  tables.save("m", {tested});
  tables.write("rows.csv", kMore);
  CHECK(thrown<FileError>([&] {
          tables.prepared({tested, resume});
        }) ==
        "m: was trained when rows.csv had 40 examples (now 41); training.initialModel=m begins another "
        "training, "
        "with its weights and the data of now");
  CHECK_NOTHROW(tables.prepared({"training.initialModel=m"}));
  const test::LogLines log;
  CHECK(tables.prepared({moved, tested, resume}).resumed.changes.empty());
  CHECK(log.all().empty());
  tables.write("test.csv", kHeader + rowsFrom(101, 121));
  CHECK_NOTHROW(tables.prepared({moved, tested, resume}));
  CHECK(log.all() == Texts{"warning: m: was trained when the test data had other examples, or other labels "
                           "of them; the scores are of those of now"});
}

TEST_CASE(
    "a training that goes on with a model reads the rows as it does, and needs its columns and classes") {
  const Tables tables;
  tables.save("m");
  tables.write("rows.csv", kHeader + rowsFrom(40, 80));  // of another median
  CHECK(tables.prepared({"training.initialModel=m"}).data.description == readInputDescription("m"));
  auto renamed = kRows;
  std::ranges::replace(renamed, 'b', 'c');
  for (const auto& [rows, problem] :
       {std::pair("mass,kind\n" + rowsFrom(0, 40), "column 1 is mass in rows.csv, and size in the model"),
        {renamed, "class 1 is c in rows.csv, and b in the model"}}) {
    tables.write("rows.csv", rows);
    for (const char* how : {"training.resume=m", "training.initialModel=m"})
      CHECK_REFUSED(tables.prepared({how}), problem);
  }
}

TEST_CASE("a model's data are divided as for its training, and an override that says otherwise is refused") {
  const Tables tables;
  tables.save("m", {"data.seed=5"});
  const auto heldOut = [&](const Texts& sets) { return tables.rows("validation", sets).validation; };
  const auto held = loadData(tables.run({"data.seed=5"}).data).rows.validation;
  for (const auto& sets : {Texts(),  // the run's own seed is 123
                           {"data.seed=9", "data.shuffle=false"},
                           {"data.splitSeed=5"},
                           {"data.seed=5", "data.splitSeed=-1"}})
    CHECK(heldOut(sets) == held);
  for (const auto& [set, difference] : {std::pair{"data.splitSeed=123", "data.splitSeed 5 (now 123)"},
                                        {"data.splitSeed=-1", "data.splitSeed 5 (now -1)"},
                                        {"data.validationExamples=20", "data.validationExamples 10 (now 20)"},
                                        {"data.validationExamples=0", "data.validationExamples 10 (now 0)"},
                                        {"data.testExamples=20", "data.testExamples 0 (now 20)"}})
    CHECK(thrown<FileError>([&] { heldOut({set}); }) ==
          fmt::format("m: was trained with {}, so it may have been trained with examples that would now be "
                      "held out; leave that out, and they are held out as they were",
                      difference));
  auto other = tables.run({"data.validationExamples=20"});  // by its file
  CHECK(chooseSplit(other, "m", "validation").remark ==
        "m: was trained with data.validationExamples 10 (now 20): what was held out then is held out now");
  CHECK(loadData(other.data).rows.validation == held);
  auto tested = tables.run({"data.test=new.csv"});
  chooseSplit(tested, "m", "validation");
  CHECK(tested.data.test == "new.csv");

  // It may train with fewer examples of a data set, but is not tested with others of them.
  const std::string all = R"(data={"type": "mixtures", "trainExamples": 60, "validationExamples": 10})";
  tables.save("m", {all});
  const auto isAsTrained = [&](const char* part, Texts sets) {
    sets.insert(sets.begin(), all);
    auto run = tables.run(sets);
    return chooseSplit(run, "m", part, sets).asTrained;
  };
  const std::string fewer = "data.trainExamples=40";
  CHECK(isAsTrained("train", {}));
  CHECK_FALSE(isAsTrained("train", {fewer}));
  CHECK_THROWS_AS(isAsTrained("validation", {fewer}), FileError);
}

TEST_CASE(
    "examples that were drawn to test a model are not validated with, and the same ones test it again") {
  const Tables tables;
  tables.save("m", {"data.testExamples=8"});
  tables.write("new.csv", kNew);
  const auto known = loadData(tables.run({"data.testExamples=8"}).data).rows;
  CHECK(known.test.size() == 8);
  const std::string fewer = "data.validationExamples=4";
  for (const auto& [part, sets] : {std::pair<const char*, Texts>{"validation", {}},
                                   {"validation", {"data.test=new.csv"}},
                                   {"test", {fewer}}})
    CHECK(tables.rows(part, sets).validation == known.validation);
  for (const auto& sets : {Texts(), {fewer}}) CHECK(tables.rows("test", sets).test == known.test);
}

TEST_CASE("a model is not tested with what its training did not hold out, and other tests are advised") {
  const Tables tables;
  tables.save("m", {"data.validationExamples=0"});
  const auto refusal = [&](const char* part, const Texts& sets) {
    auto run = tables.run(sets);
    return thrown<FileError>([&] { chooseSplit(run, "m", part); });
  };
  const std::string none = "Examples 0: no examples of rows.csv were held out, so none of them tests it; ",
                    all =
                        "data.test=FILE tests with all examples of a file, whatever the model was trained "
                        "with";
  CHECK(refusal("validation", {}) ==
        "m: was trained with data.validation" + none + all + ", without --on validation");
  CHECK(refusal("test", {"data.testExamples=8"}) ==
        "m: was trained with data.test" + none + "data.testExamples=0 and " + all);
  CHECK(refusal("train", {}).empty());
  CHECK(detail::testAdvice({.type = "idx"}, "test") ==
        "data.testImages=FILE and data.testLabels=FILE tests with all examples of a file, whatever the model "
        "was trained with");
  CHECK(detail::testAdvice({.type = "mnist"}, "train") ==
        "the test examples of the data set test it, without --on train");
}

TEST_CASE("data that have changed, or those of another file, are not taken for the training's") {
  const Tables tables;
  tables.save("m");
  const auto refusal = [&](const std::string& name, const std::string& text, const char* part) {
    tables.write(name, text);
    const auto data = tables.run({"data.train=" + name}).data;
    return thrown<FileError>(
        [&] { detail::requireSameTrainingData("m", data, loadData(data), part, "advice"); });
  };
  const std::string other = "m: was trained with rows.csv, and other.csv has ",
                    same = "the same examples in another order; advice",
                    changed = "m: was trained when rows.csv had ";
  const test::LogLines log;
  CHECK(refusal("other.csv", kRows, "validation").empty());
  CHECK(log.all().empty());
  CHECK(refusal("other.csv", kMore, "train").empty());
  CHECK(log.all() == Texts{"warning: " + other + "other examples, of which it may know some"});
  CHECK(refusal("other.csv", kMore, "validation") == other + "41 examples instead of 40; advice");
  CHECK(refusal("other.csv", kTurned, "train") == other + same);
  CHECK(refusal("rows.csv", kTurned, "train") == changed + same);
  CHECK(refusal("rows.csv", kMore, "train") == changed + "40 examples (now 41); advice");
  auto edited = kRows;
  edited.replace(edited.rfind(",b\n"), 2, ",a");
  CHECK(refusal("rows.csv", edited, "train") == changed + "other examples, or other labels of them; advice");
  const auto drawn = tables.run({R"(data={"type": "mixtures", "trainExamples": 60})"}).data;
  CHECK_NOTHROW(detail::requireSameTrainingData("m", drawn, loadData(drawn), "validation", "advice"));
  CHECK(log.all().back() ==
        "warning: m: was trained with rows.csv, and mixtures has other examples, of which it may know some");
}

TEST_CASE("a test set that a model has learned is named, whatever the run trains with now") {
  const Tables tables;
  tables.save("m");
  // Of a test set that is read alone, and of one that is read with the training data.
  const auto remarks = [&](const std::string& train, const std::string& test) {
    const auto data = tables.run({"data.train=" + train, "data.test=" + test}).data;
    return Texts{detail::testRemark("m", data, *loadTestData(data, readInputDescription("m"))),
                 detail::testRemark("m", data, loadData(data))};
  };
  const auto same = [](const std::string& test) {
    return fmt::format(
        "the test rows are the training rows (data.test {}, data.train rows.csv), so the "
        "scores on them say nothing of new rows",
        test);
  };
  tables.write("copy.csv", kTurned);
  tables.write("new.csv", kNew);
  CHECK(remarks("rows.csv", "new.csv") == Texts{"", ""});
  CHECK(remarks("rows.csv", "copy.csv") == Texts{same("copy.csv"), same("copy.csv")});
  CHECK(remarks("new.csv", "rows.csv") == Texts{same("rows.csv"), same("rows.csv")});
  CHECK(remarks("new.csv", "new.csv") == Texts{"", ""});  // it has not learned them
  tables.write("copy.csv", kHeader + rowsFrom(0, 20));
  CHECK(remarks("rows.csv", "copy.csv") ==
        Texts{"",
              "20 of 20 test rows are equal to training rows (data.test copy.csv, data.train rows.csv), "
              "so the scores say too little of new rows"});
  tables.write("rows.csv", kMore);
  CHECK(remarks("rows.csv", "copy.csv") == Texts{"", ""});
  const std::string grown =
      "m was trained when rows.csv had 40 examples (now 41), so it may have learned some of the rows that "
      "test it";
  CHECK(remarks("new.csv", "rows.csv") == Texts{grown, grown});

  auto run = tables.run();
  run.data = {.type = "idx", .trainImages = "a", .trainLabels = "l"};
  LoadedData learned, tested;
  learned.contents.training = tested.contents.test = {.examples = 3, .ordered = "1", .unordered = "2"};
  saveModel(*Network::load("m"), "m", detail::notesOf(run, learned));
  run.data = {.type = "idx", .trainImages = "b", .trainLabels = "l", .testImages = "c", .testLabels = "l"};
  CHECK_CONTAINS(detail::testRemark("m", run.data, tested), "data.testImages c, data.trainImages a");
}

TEST_CASE("a training that begins with a model that may know what is held out now, or tests, is warned of") {
  const Tables tables;
  tables.save("m", {"data.seed=5"});
  const auto warnings = [&](Texts sets) {
    sets.emplace_back("training.initialModel=m");
    return fmt::format("{}", fmt::join(tables.prepared(sets).warnings, "\n"));
  };
  const std::string head = "training.initialModel m was trained ",
                    known = head + "with examples that are held out now",
                    learned = ", so it may have learned some of those held out now",
                    advice = "data.test=FILE tests with new rows";
  CHECK(warnings({"data.seed=9"}) == known + "; data.splitSeed=5 holds out the same");
  CHECK(warnings({"data.seed=9", "data.splitSeed=5"}).empty());
  CHECK(warnings({"data.seed=5"}).empty());
  CHECK(warnings({"data.seed=5", "data.validationExamples=4"}).empty());
  CHECK(warnings({"data.seed=5", "data.validationExamples=20"}) == known);
  CHECK(warnings({"data.seed=5", "data.validationExamples=4", "data.testExamples=8"}) == known);
  for (const char* other : {"data.validationExamples=4", "data.testExamples=8"})
    CHECK(warnings({"data.seed=9", other}) == known);
  tables.write("rows.csv", kTurned);
  CHECK(warnings({"data.seed=5"}) == known);

  tables.write("rows.csv", kMore);
  tables.write("new.csv", kNew);
  const auto grown = head + "when rows.csv had 40 examples (now 41)" + learned;
  for (const char* seed : {"data.seed=5", "data.seed=9"}) CHECK(warnings({seed}) == grown + "; " + advice);
  CHECK(warnings({"data.testExamples=8"}) == grown + "; data.testExamples=0 and " + advice);
  CHECK(warnings({"data.test=new.csv"}) == grown);
  tables.write("new.csv", kRows);
  CHECK_CONTAINS(warnings({"data.test=new.csv"}), head + "with the test rows");

  tables.write("more.csv", kMore);
  tables.write("rows.csv", kRows);
  CHECK(warnings({"data.train=more.csv"}) ==
        head + "with rows.csv, and more.csv has 41 examples instead of 40" + learned + "; " + advice);
  CHECK(warnings({"data.train=more.csv", "data.validationExamples=0"}).empty());
}

TEST_CASE("what a model's own beginnings have learned is known to its evaluation and to the next training") {
  const Tables tables;
  tables.write("more.csv", kMore);
  const std::string more = "data.train=more.csv";
  const auto begin = [&](const std::string& from, const std::string& model, Texts sets = {}) {
    sets.push_back("training.initialModel=" + from);
    tables.save(model, sets);
  };
  const auto remark = [&](const std::string& model, const char* part, const Texts& sets = {}) {
    const auto data = tables.run(sets).data;
    return detail::earlierRemark(model, data, loadData(data), part);
  };
  tables.save("a");
  begin("a", "b", {more});
  begin("b", "c", {more});
  const std::string learned =
      " began with a, which was trained with rows.csv, and more.csv has 41 examples instead of 40, so it "
      "may have learned some of those held out now; data.test=FILE tests with new rows";
  CHECK(remark("b", "validation", {more}) == "b" + learned);
  CHECK(remark("b", "train", {more}).empty());
  CHECK(remark("c", "validation", {more}) == "c" + learned);
  CHECK(remark("c", "test", {"data.test=rows.csv"}) ==
        "c began with a, which was trained with the test rows");
  CHECK(tables.prepared({more, "training.initialModel=b"}).warnings ==
        Texts{"training.initialModel b" + learned});
  CHECK(tables.prepared({more, "training.resume=c"}).warnings == Texts{"training.resume c" + learned});
  CHECK(remark("c", "validation", {more, "data.test=rows.csv"}) ==
        "c" + learned.substr(0, learned.find("; ")));
  const auto earlier = [&](const Texts& sets, const char* resumed) {
    Texts models;
    for (const auto& one : detail::earlierTrainings(tables.run(sets), resumed)) models.push_back(one.model);
    return models;
  };
  CHECK(earlier({}, "c") == Texts{"b", "a"});
  CHECK(earlier({"training.initialModel=c"}, "") == Texts{"c", "a"});  // b has learned what c has
  begin("a", "b");                                                     // with the same rows held out
  CHECK(remark("b", "validation").empty());

  Network::load("a")->save("plain");
  const std::string silent = "does not say which rows it has learned: it may know rows that are held out now";
  CHECK(tables.prepared({"training.initialModel=plain"}).warnings ==
        Texts{"training.initialModel plain " + silent});
  begin("plain", "b");
  CHECK(remark("b", "validation") == "b began with plain, which " + silent);
}

TEST_CASE("tensors of another file are not taken for ones that a model knows, nor those of a silent model") {
  RunFile run;
  run.data = {.type = "safetensors", .train = "new"};
  run.training.initialModel = "m";
  LoadedData data;
  data.rows.validation = {0};
  data.contents.training = {.examples = 4, .ordered = "1", .unordered = "2"};
  const auto warnings = [&](const EarlierTraining& earlier) {
    data.contents.earlier = {earlier};
    return detail::dataWarnings(run, data);
  };
  const ExampleContents learned{.examples = 3, .ordered = "3", .unordered = "4"};
  const auto trainedWith = [&](const char* file) {
    return warnings({.model = "m", .data = {.type = "safetensors", .train = file}, .training = learned});
  };
  CHECK(trainedWith("old").empty());
  CHECK(trainedWith("new") ==
        Texts{"training.initialModel m was trained when new had 3 examples (now 4), so it may have "
              "learned some of those held out now; data.test=FILE tests with new examples"});
  CHECK(warnings({.model = "m"}).empty());
}

}  // namespace
}  // namespace muster
