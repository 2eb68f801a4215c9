// Tables by the program muster: from rows to predictions.
#include <limits>

#include "muster/core/base/text_table.h"
#include "muster/core/io/json_value.h"
#include "muster/core/nn/network.h"
#include "muster/parallel/run/run_file.h"
#include "tests/examples/sandbox.h"

namespace muster {
namespace {

using test::linesOf;

/// 150 rows: words, gaps, an identifier and magnitudes; a cat is red, a dog is not.
std::string animals() {
  std::string text = "id,colour,size,found,kind\n";
  for (int i = 0; i < 150; ++i)
    text += fmt::format("{},{},{},20{:02}-0{}-01,{}\n", i + 1,
                        i % 2 == 0   ? "red"
                        : i % 3 == 0 ? "blue"
                                     : "green",
                        i % 5 == 0 ? "" : fmt::format("{}", 1000 * (i % 11)), 10 + i % 9, 1 + i % 9,
                        i % 2 == 0 ? "cat" : "dog");
  return text;
}

/// The header and these rows of a table.
std::string rowsOf(const std::string& table, std::size_t first, std::size_t end) {
  const auto lines = linesOf(table);
  std::string rows = lines[0] + "\n";
  for (auto row = first; row < end; ++row) rows += lines[1 + row] + "\n";
  return rows;
}

/// The animals in another order.
std::string turned() {
  return rowsOf(animals(), 30, 150) + rowsOf(animals(), 0, 30).substr(animals().find('\n') + 1);
}

std::string replaced(std::string text, const std::string& part, const std::string& by) {
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + by.size()))
    text.replace(at, part.size(), by);
  return text;
}

/// The program beside rows.csv, the animals.
class Tables : public test::Sandbox {
 public:
  Tables() { write("rows.csv", animals()); }

  /// Trains rows.csv by the run that `muster example` suggests, on a machine that runs other tests, too.
  test::Outcome trained(const std::string& epochs, const std::string& more = "",
                        const std::string& example = "") const {
    const auto suggested = succeeds("example rows.csv " + example).out;
    const std::vector<std::string> sets{"training.devices=cpu", "training.pinThreads=false",
                                        "listeners.progress=false", "training.epochs=" + epochs};
    write("run.json", RunFile::parse(suggested, sets).toJson());
    return succeeds("train run.json " + more);
  }
};

}  // namespace

TEST_CASE("a table with words, gaps and dates is tested and predicted by its model, without the table") {
  const Tables muster;
  const auto run = muster.trained("60");
  const std::string columns =
      "columns: colour (3 words), size, found (date); left out: id (its whole numbers count the rows)\n";
  CHECK_CONTAINS(run.out, columns);
  CHECK_CONTAINS(muster.succeeds("plan run.json").out, columns);
  CHECK_CONTAINS(run.out, "validation: accuracy 1.0000");
  CHECK_CONTAINS(run.out, " on 22 examples (95 % interval of the accuracy: 0.85 to 1.00; they chose");
  CHECK_LACKS(run.err, "held-out");
  CHECK_CONTAINS(run.out, "saved: rows.safetensors");

  std::filesystem::remove(muster.directory / "rows.csv");
  muster.write("new.csv",
               " found ,size,name,colour\n2012-03-01,,\"A, B\",red\n2013-03-01,2000,C,blue\n,1,D,pink\n");
  muster.succeeds("predict rows.safetensors new.csv --keep name --out p.csv");
  const auto lines = linesOf(muster.read("p.csv"));
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == "name,prediction,probability,probability of cat,probability of dog");
  CHECK(lines[1].starts_with("\"A, B\",cat,0.9"));
  CHECK(lines[2].starts_with("C,dog,0.9"));
  CHECK(lines[3].starts_with("D,"));

  // Two of these six are labelled wrongly: cats are red.
  muster.write("test.csv",
               "colour,size,found,kind\nred,1,2012-03-01,cat\nred,1,2012-03-01,cat\nred,1,2012-03-01,cat\n"
               "red,1,2012-03-01,dog\nblue,1,2012-03-01,dog\ngreen,1,2012-03-01,cat\n");
  const auto scores = parseJson(muster.succeeds("evaluate run.json --set data.test=test.csv --json -").out);
  CHECK(scores.at("task") == "classification");
  CHECK(scores.at("accuracy").to_number<double>() == doctest::Approx(4.0 / 6));
  CHECK(scores.at("classes").at(0).at("name") == "cat");

  muster.write("bare.csv", "2012,1,red\n2012,1,red\n");
  const std::string byModel = "predict rows.safetensors ",
                    of = "rows.safetensors is a model of a table, and ";
  muster.refuses("evaluate run.json --on train", "rows.csv", 1);
  muster.refuses(byModel + "bare.csv", "if it has no names, write them above the rows: this model finds", 1);
  muster.refuses(byModel + "one.PNG", of + "one.PNG is a picture");
  muster.refuses(byModel + ".", of + ". is a directory");
  muster.refuses(byModel, "needs what it shall predict: the file of the rows");
  muster.refuses(byModel + "new.csv --set a=b", "is for a run file");
  muster.refuses("predict run.json new.csv", "new rows are predicted by a model file");
  for (const std::string name : {"other.st", "other.safetensors", "--model other.st"})
    muster.refuses(
        "evaluate run.json " + name,
        "other." + name.substr(name.rfind('.') + 1) + ": cannot be read: No such file or directory", 1);
}

TEST_CASE("a model file is known by its content, and a network without shapes takes them from it") {
  const Tables muster;
  muster.trained("1");
  muster.write("k2.st", muster.read("rows.safetensors"));
  for (const std::string line :
       {"summary k2.st", "evaluate run.json k2.st --on validation", "predict k2.st rows.csv"})
    CHECK(muster.succeeds(line).out == muster.succeeds(replaced(line, "k2.st", "rows.safetensors")).out);
  muster.refuses("train k2.st", "k2.st: is a model file; give the run file");
  muster.write("notes.st", R"({"data":{"type":"csv"}})");  // a brace where that of a model file would be
  muster.refuses("predict notes.st rows.csv", "notes.st: format: is missing");

  muster.succeeds("convert rows.safetensors --to weights --out w.safetensors");
  const std::string back = "convert w.safetensors --out m.safetensors --network ";
  muster.refuses(back + "run.json", "here --set network.inputs[0].shape=[1,28,28] says it, or 31 for 31");
  muster.succeeds(back + "run.json --set network.inputs[0].shape=16");
  muster.succeeds(back + "k2.st");
}

TEST_CASE("a training that predicts held-out rows no better than a guess says so, by the classes' weights") {
  const Tables muster;
  std::string text = "a,kind\n";  // "yes" is one in ten, and in the half with a = 1
  for (int i = 0; i < 400; ++i)
    text += fmt::format("{},{}\n", i % 10 < 5 ? 1 : 0, i % 10 == 0 ? "yes" : "no");
  muster.write("rows.csv", text);
  CHECK_CONTAINS(muster.trained("60", "", "--label 2").err,
                 "warning: the 60 held-out examples are predicted no better than by the commonest class no ");
  const std::string weighted = " run.json --set data.classWeights.yes=9";
  const std::string loss = "the loss of the validation data without class weights, which favours frequent",
                    remark = "listeners.earlyStopping looks at " + loss + " classes; ";
  for (const std::string command : {"train", "plan"}) {
    const auto run = muster.succeeds(command + weighted);
    CHECK_LACKS(run.err, "held-out");
    CHECK_CONTAINS(run.out, "class weights: no 1, yes 9\n");
    CHECK_CONTAINS(run.err + run.out, remark);
    CHECK_CONTAINS(run.err + run.out, "listeners.earlyStopping.monitor=f1 counts each class alike\n");
  }
  const auto compared = muster.succeeds("compare" + weighted +
                                        " --set training.epochs=1 --arm averaging --seeds 1 --out out "
                                        "--tune learningRate=0.01,0.02");
  CHECK_CONTAINS(compared.out, "Warning: --tune chooses by " + loss + "\n  classes.\n");
  CHECK_CONTAINS(compared.out, "Warning: listeners.earlyStopping looks at the loss ");
}

TEST_CASE("a model of other columns or classes is refused by name, before a remark on what it held out") {
  const Tables muster;
  muster.trained("1", "--set data.validationExamples=9");
  CHECK_CONTAINS(muster.succeeds("evaluate run.json --on validation").err,
                 "rows.safetensors: was trained with data.validationExamples 9 (now 22)");
  muster.write("rows.csv", replaced(animals(), "kind", "sort"));
  muster.refuses("evaluate run.json --on validation --set data.label=sort",
                 "the column of the classes is sort in rows.csv, and kind in ");
  muster.write("rows.csv", replaced(animals(), "cat", "elk"));
  for (const std::string line : {"evaluate run.json --on validation", "predict run.json --on train",
                                 "train run.json --set training.initialModel=rows.safetensors"})
    muster.refuses(line, "class 0 is dog in rows.csv, and cat in the model");
}

TEST_CASE("a regression learns in scaled units and predicts in the table's own") {
  const Tables muster;
  std::string text = "x,colour,price\n";
  for (int i = 0; i < 200; ++i) {
    const double x = 0.1 * (i * 37 % 100);
    text += fmt::format("{},{},{}\n", x, i % 2 == 0 ? "red" : "blue",
                        100000 + 3000 * x + (i % 2 == 0 ? 5000 : 0));
  }
  muster.write("rows.csv", text);
  muster.trained("60", "", "--regression");
  muster.write("new.csv", "colour,x\nblue,5\nred,2\n");
  const auto lines = linesOf(muster.succeeds("predict rows.safetensors new.csv").out);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == "prediction");
  CHECK(std::stod(lines[1]) == doctest::Approx(115000).epsilon(0.02));
  CHECK(std::stod(lines[2]) == doctest::Approx(111000).epsilon(0.02));

  const auto own = linesOf(muster.succeeds("predict run.json --set data.test=rows.csv").out),
             rows = linesOf(text);
  REQUIRE(own.size() == 201);
  CHECK(own[0] == "example,label,prediction");
  CHECK(own[1].starts_with("0,105000,10"));
  for (std::size_t i = 1; i < rows.size(); ++i)
    CHECK(own[i].starts_with(fmt::format("{},{},", i - 1, rows[i].substr(rows[i].rfind(',') + 1))));
  const auto scores = muster.succeeds("evaluate run.json --set data.test=rows.csv").out;
  CHECK(scores.starts_with("200 examples, 1 column: R2 0.9"));
  CHECK_CONTAINS(scores, ", in the column's own units\n");

  const auto network = Network::load(muster.directory / "rows.safetensors");
  std::ranges::fill(network->blocks().front().values.span<float>(), std::numeric_limits<float>::quiet_NaN());
  network->save(muster.directory / "nan.safetensors");
  const std::string earlier = "prediction\n1\n",
                    refusal = "muster: predict: a prediction for example 0 is NaN";
  muster.write("p.csv", earlier);
  muster.write("fresh.csv", "x,colour,price\n0.05,red,100000\n");
  for (const std::string line :
       {"nan.safetensors new.csv", "run.json nan.safetensors --set data.test=fresh.csv"})
    muster.refuses("predict --out p.csv " + line, refusal);
  CHECK(muster.read("p.csv") == earlier);
  muster.refuses("evaluate run.json nan.safetensors --set data.test=fresh.csv",
                 "evaluation: a prediction for example 0 is NaN");
}

TEST_CASE("muster example asks for what a table does not say, by its own options") {
  const Tables muster;
  const auto refuses = [&](const std::string& rows, const std::string& options, const std::string& text) {
    muster.write("rows.csv", rows);
    muster.refuses("example rows.csv " + options, text, 1);
  };
  std::string decimals = "x,y\n";
  for (int i = 0; i < 100; ++i) decimals += fmt::format("{}.5,{}.25\n", i % 7, i);
  refuses("5.1,3.5,setosa\n4.9,3.0,setosa\n", "", "set header to false (--no-header)");
  refuses(decimals, "", "to predict a number, ask for a regression (--regression)");
  refuses("a,b\n1,2\n5,2\n7,2\n", "--regression", "and --label NAME names another column");
  refuses("a,kind\n1.5,cat\n2.5,dog\n", "--label knid", "the nearest of its 2 is kind");
  CHECK_CONTAINS(muster.succeeds("example rows.csv").err,
                 "the label is the last column, kind; --label NAME names another one");
}

TEST_CASE(
    "on data that have changed since no training is resumed, and what a model may have learned is told") {
  const Tables muster;
  muster.trained("1");
  const std::string grown = "was trained when rows.csv had 150 examples (now 151)",
                    resume =
                        "train run.json --resume rows.safetensors --epochs 2 --model second.safetensors "
                        "--set data.train=";
  muster.write("moved.csv", animals());
  muster.write("rows.csv", animals() + "151,red,,2015-03-01,cat\n");
  muster.refuses(resume + "rows.csv",
                 "muster: rows.safetensors: " + grown +
                     "; --set training.initialModel=rows.safetensors begins another training, ",
                 1);
  CHECK_FALSE(muster.has("second.safetensors"));

  const std::string begun = " run.json --set training.initialModel=rows.safetensors",
                    learned = grown + ", so it may have learned some of those held out now; ",
                    first = "training.initialModel rows.safetensors " + learned;
  CHECK_CONTAINS(muster.succeeds("plan" + begun).out, "note: " + first + "data.test=FILE tests ");
  CHECK_CONTAINS(muster.succeeds("train" + begun + " --model second.safetensors").err,
                 "warning: " + first + "--set data.test=FILE tests ");
  CHECK_CONTAINS(muster.succeeds("compare" + begun + " --arm averaging --seeds 1 --out compared").out,
                 "Warning: training.initialModel rows.safetensors " + grown);
  for (const auto& [line, model] :
       {std::pair("evaluate run.json second.safetensors --on validation", "second"),
        {"train run.json --resume second.safetensors --epochs 2 --model third", "training.resume second"}})
    CHECK_CONTAINS(
        muster.succeeds(line).err,
        fmt::format("warning: {}.safetensors began with rows.safetensors, which {}", model, learned));

  const auto moved = muster.succeeds(resume + "moved.csv").out;  // the data that it was trained with
  CHECK_CONTAINS(moved, "resuming: rows.safetensors, with 1 epoch finished");
  CHECK_LACKS(moved, "with other bits");
  CHECK_CONTAINS(muster.succeeds("train run.json --set data.train=moved.csv").out,
                 "note: replaces rows.safetensors, which was trained on rows.csv; ");
}

TEST_CASE(
    "what was held out of a training stays held out when its model is used, and changed data are refused") {
  const Tables muster;
  muster.trained("1", "--seed 5 --test-examples 20");
  const std::string held = "predict run.json --on validation", tested = "predict run.json";
  const auto rows = muster.succeeds(held + " --set data.seed=5").out;
  CHECK(linesOf(rows).size() == 23);
  CHECK(muster.succeeds(held).out == rows);  // the run file's own seed is 123
  CHECK(linesOf(muster.succeeds(tested).out).size() == 21);
  muster.refuses(held + " --set data.splitSeed=123",
                 "rows.safetensors: was trained with data.splitSeed 5 (now 123), so it may have", 1);
  muster.write("few.csv", rowsOf(animals(), 0, 20));
  const std::string few = "evaluate run.json --on validation --set data.train=few.csv";
  muster.refuses(
      few,
      "muster: rows.safetensors: was trained with data.testExamples 20 (now 0), and what was held out "
      "then is held out now, but there are 20 examples in all; --set data.test=FILE tests ",
      1);
  muster.refuses(few + " --set data.testExamples=20", ", and there are 20 examples in all");
  muster.write("rows.csv", turned());
  for (const std::string command : {"evaluate", "predict"})
    muster.refuses(command + " run.json --on train",
                   "muster: rows.safetensors: was trained when rows.csv had the same examples in another "
                   "order; --set data.test=FILE tests ",
                   1);
  CHECK(linesOf(muster.succeeds(tested + " --set data.test=rows.csv").out).size() == 151);
}

TEST_CASE("a test with rows of the training is named by plan, train, the report and evaluate") {
  const Tables muster;
  muster.write("copy.csv", turned());
  const std::string copied = " run.json --set data.test=copy.csv",
                    warning =
                        "the test rows are the training rows (data.test copy.csv, data.train rows.csv), so ";
  CHECK_CONTAINS(
      muster.trained("1", "--set data.test=copy.csv --json result.json" + test::reportIn("report")).err,
      "warning: " + warning);
  CHECK_CONTAINS(parseJson(muster.read("result.json")).at("warnings").at(0).as_string(), warning);
  if (test::kWithPage)
    for (const char* file : {"report/report.html", "report/confusion.txt"})
      CHECK_CONTAINS(muster.read(file), warning);
  CHECK_CONTAINS(muster.succeeds("plan" + copied).out, "note: " + warning);
  CHECK_CONTAINS(muster.succeeds("evaluate" + copied).err, "warning: " + warning);

  muster.write("copy.csv", rowsOf(animals(), 0, 50) + "151,red,,2015-03-01,\n");
  CHECK_CONTAINS(muster.succeeds("evaluate" + copied).err,
                 "muster: copy.csv: 1 row without kind not tested\n"
                 "muster: warning: 50 of 50 test rows are equal to training rows (data.test copy.csv, ");
  std::filesystem::remove(muster.directory / "rows.csv");
  CHECK_LACKS(muster.succeeds("evaluate" + copied).err, "warning");
}

TEST_CASE("predictions of held-out rows have the numbers of the rows, and columns of theirs") {
  const Tables muster;
  auto rows = animals();
  rows.insert(rows.find("1,red"), "0,red,1,2012-01-01,\n");  // without a label: row 0 is left out
  const auto table = linesOf(rows);
  rows.replace(rows.find("0,red"), 5, "0,\"r\ned\"");  // lines are not rows
  rows.insert(rows.find("1,red"), "\n");
  muster.write("rows.csv", rows);
  muster.trained("1", "--set data.batch=10");
  for (const std::string on : {"validation", "train"}) {
    const auto lines = linesOf(muster.succeeds("predict run.json --keep id --keep kind --on " + on).out);
    REQUIRE(lines.size() == (on == "train" ? 129 : 23));
    CHECK(lines[0] == "id,kind,example,label,prediction,probability,probability of cat,probability of dog");
    for (std::size_t i = 1; i < lines.size(); ++i) {
      const auto cells = csvFields(lines[i]);  // id, kind, number, label
      CHECK(cells.at(1) == cells.at(3));
      CHECK(table.at(std::stoul(cells.at(2)) + 1).starts_with(cells.at(0) + ","));
    }
  }
  CHECK_CONTAINS(test::errorOf(muster("predict run.json --on validation --keep nmae"), 1), "nmae");
  muster.refuses("predict rows.safetensors rows.csv --keep id,kind --keep id", "id is named twice");

  muster.write("digits.json", muster.succeeds("example").out);
  const std::string digits = " digits.json --set data.testExamples=9 --set data.trainExamples=";
  muster.succeeds("train" + digits + "40 --epochs 1 --device cpu --pin-threads false");
  CHECK(linesOf(muster.succeeds("predict" + digits + "12 --on train").out).size() == 13);
  muster.refuses("predict" + digits + "12 --keep id", "--keep is for a table, and the data are of type ");
}

}  // namespace muster
