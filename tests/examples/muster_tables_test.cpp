// Tables by the program muster: from rows to predictions.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "muster/core/io/json_value.h"
#include "muster/core/nn/network.h"
#include "tests/examples/sandbox.h"

namespace muster {
namespace {

using test::contains;
using Texts = std::vector<std::string>;

class Tables : public test::Sandbox {
 public:
  Tables() : Sandbox(MUSTER_PROGRAM) {}

  void write(const std::string& name, const std::string& text) const {
    test::writeFile(directory / name, text);
  }
  std::string read(const std::string& name) const { return test::readFile(directory / name); }

  /// Trains what `muster example` writes for a table.
  test::Outcome trained(const std::vector<std::string>& example,
                        const std::vector<std::string>& more = {}) const {
    auto arguments = example;
    arguments.insert(arguments.begin(), "example");
    const auto made = test::succeeded(run(arguments));
    write("run.json", made.out);
    std::vector<std::string> train{"train", "run.json",
                                   "--set", "training.devices=cpu",
                                   "--set", "training.pinThreads=false",
                                   "--set", "listeners.progress=false",
                                   "--set", "training.epochs=60"};
    train.insert(train.end(), more.begin(), more.end());
    return run(train);
  }
};

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

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("the model of a suggested run is named after the data, so that another run does not replace it") {
  const Tables tables;
  tables.write("a.csv", animals());
  tables.write("b.csv", animals());
  CHECK(
      contains(tables.trained({"a.csv", "--label", "kind"}, {"--epochs", "1"}).out, "saved: a.safetensors"));
  CHECK(
      contains(tables.trained({"b.csv", "--label", "kind"}, {"--epochs", "1"}).out, "saved: b.safetensors"));
}

TEST_CASE("a model that was trained on other data is not replaced without a word") {
  const Tables tables;
  tables.write("a.csv", animals());
  tables.write("b.csv", animals());
  const std::vector<std::string> same{"--epochs", "1", "--model", "model.safetensors"};
  const std::string note = "note: replaces model.safetensors, which was trained on ";
  CHECK_FALSE(contains(tables.trained({"a.csv", "--label", "kind"}, same).out, "note: replaces"));
  CHECK_FALSE(contains(tables.trained({"a.csv", "--label", "kind"}, same).out, "note: replaces"));
  CHECK(contains(tables.trained({"b.csv", "--label", "kind"}, same).out, note + "a.csv;"));
  const auto digits = [&](const char* type) {
    return tables.run({"train", "run.json", "--set", fmt::format(R"(data={{"type": "{}"}})", type),
                       "--examples", "40", "--set", "network=mlp", "--set", "listeners={\"progress\": false}",
                       "--model", "model.safetensors", "--epochs", "1", "--pin-threads", "false", "--device",
                       "cpu"});
  };
  CHECK(contains(digits("generated").out, note + "b.csv;"));
  CHECK(contains(digits("mixtures").out, note + "generated;"));
}

TEST_CASE("a table with words, gaps and dates is predicted by the model file alone") {
  const Tables muster;
  muster.write("rows.csv", animals());
  const auto run = test::succeeded(muster.trained({"rows.csv", "--label", "kind"}));
  CHECK(contains(
      run.out,
      "columns: colour (3 words), size, found (date); left out: id (its whole numbers count the rows)"));
  CHECK(contains(run.out, "validation: accuracy 1.0000"));
  CHECK(contains(
      test::succeeded(muster.run({"plan", "run.json"})).out,
      "columns: colour (3 words), size, found (date); left out: id (its whole numbers count the rows)\n"));
  const auto written = parseJson(muster.read("run.json"));
  const auto network = written.at("network");
  CHECK(network.at("l2").to_number<double>() == doctest::Approx(1.0 / 128));  // 22 of 150 rows are held out
  CHECK(network.at_pointer("/updater/learningRate/value").to_number<double>() == doctest::Approx(0.001));
  CHECK(written.at_pointer("/training/epochs").to_number<int>() == 800);  // 80000 steps of 16 would be 5000
  CHECK(written.at_pointer("/listeners/earlyStopping/patience").to_number<int>() == 90);
  CHECK(contains(run.out, " on 22 examples (95 % interval of the accuracy: 0.85 to 1.00; they chose"));

  std::filesystem::remove(muster.directory / "rows.csv");
  muster.write("new.csv",
               " found ,size,name,colour\n2012-03-01,,\"A, B\",red\n2013-03-01,2000,C,blue\n,1,D,pink\n");
  const auto predicted = test::succeeded(
      muster.run({"predict", "rows.safetensors", "new.csv", "--keep", "name", "--out", "p.csv"}));
  const auto lines = linesOf(muster.read("p.csv"));
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == "name,prediction,probability,probability of cat,probability of dog");
  CHECK(lines[1].starts_with("\"A, B\",cat,0.9"));
  CHECK(lines[2].starts_with("C,dog,0.9"));
  CHECK(lines[3].starts_with("D,"));

  const auto problem = [&](const std::vector<std::string>& arguments) {
    const auto failed = muster.run(arguments);
    CHECK(failed.exit != 0);
    return failed.err;
  };
  muster.write("kept.csv", "found,size,\"name, first\",id,colour\n2012-03-01,1,\"A, B\",7,red\n");
  for (const auto& keep : {std::vector<std::string>{"--keep", "id,\"name, first\""},
                           {"--keep", "id", "--keep", "name, first"}}) {
    std::vector<std::string> arguments{"predict", "rows.safetensors", "kept.csv"};
    arguments.insert(arguments.end(), keep.begin(), keep.end());
    CHECK(test::succeeded(muster.run(arguments))
              .out.starts_with("id,\"name, first\",prediction,probability,probability of cat,probability of "
                               "dog\n7,\"A, B\",cat,"));
  }
  CHECK(contains(muster.run({"predict", "rows.safetensors", "kept.csv", "--keep", "id,"}).err,
                 "columns to keep, \"id,\": one of them has no name"));
  muster.write("other.csv", "found,size\n2012-03-01,1\n");
  CHECK(contains(problem({"predict", "rows.safetensors", "other.csv"}),
                 "other.csv: lacks the column colour, from which the model learned; it has found, size"));
  muster.write("bare.csv", "2012,1,red\n2012,1,red\n");
  CHECK(
      contains(problem({"predict", "rows.safetensors", "bare.csv"}),
               "if it has no names, write them above the rows: this model finds its columns by their names"));
  CHECK(contains(problem({"predict", "rows.safetensors", "one.PNG"}),
                 "rows.safetensors is a model of a table, and one.PNG is a picture"));
  std::filesystem::create_directory(muster.directory / "folder");
  CHECK(contains(problem({"predict", "rows.safetensors", "folder"}),
                 "rows.safetensors is a model of a table, and folder is a directory"));
  CHECK(contains(problem({"predict", "rows.safetensors"}),
                 "needs what it shall predict: the file of the rows"));
  CHECK(contains(problem({"predict", "run.json", "new.csv"}), "new rows are predicted by a model file"));
  CHECK(contains(problem({"predict", "rows.safetensors", "new.csv", "--set", "a=b"}), "is for a run file"));
  CHECK(contains(problem({"predict", "rows.safetensors", "new.csv", "--keep", "nmae"}),
                 "the nearest of its 4 is name"));
}

TEST_CASE("a model file is known by its content, and a network without shapes takes them from it") {
  const Tables muster;
  muster.write("rows.csv", animals());
  test::succeeded(muster.trained({"rows.csv", "--label", "kind"}, {"--epochs", "1"}));
  muster.write("k2.st", muster.read("rows.safetensors"));
  for (const auto& arguments : {Texts{"summary", "k2.st"},
                                {"evaluate", "run.json", "k2.st", "--on", "validation"},
                                {"predict", "k2.st", "rows.csv"}}) {
    auto named = arguments;
    std::ranges::replace(named, "k2.st", "rows.safetensors");
    CHECK(test::succeeded(muster.run(arguments)).out == test::succeeded(muster.run(named)).out);
  }
  CHECK(contains(muster.run({"train", "k2.st"}).err, "k2.st: is a model file; give the run file"));
  muster.write("notes.st", R"({"data":{"type":"csv"}})");  // a brace where that of a model file would be
  CHECK(contains(muster.run({"predict", "notes.st", "rows.csv"}).err, "notes.st: format: is missing"));

  test::succeeded(muster.run({"convert", "rows.safetensors", "--to", "weights", "--out", "w.safetensors"}));
  const Texts back{"convert", "w.safetensors", "--out", "m.safetensors", "--network"};
  const auto with = [&](const Texts& more) {
    auto arguments = back;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return muster.run(arguments);
  };
  CHECK(
      contains(with({"run.json"}).err, "here --set network.inputs[0].shape=[1,28,28] says it, or 31 for 31"));
  test::succeeded(with({"run.json", "--set", "network.inputs[0].shape=16"}));
  test::succeeded(with({"k2.st"}));
}

TEST_CASE("a table is tested without the one that it was trained with, and all scores can be read as JSON") {
  const Tables muster;
  muster.write("rows.csv", animals());
  REQUIRE(muster.trained({"rows.csv", "--label", "kind"}).exit == 0);
  std::filesystem::remove(muster.directory / "rows.csv");
  // Two of these six are labelled wrongly: cats are red.
  muster.write("test.csv",
               "colour,size,found,kind\nred,1,2012-03-01,cat\nred,1,2012-03-01,cat\nred,1,2012-03-01,cat\n"
               "red,1,2012-03-01,dog\nblue,1,2012-03-01,dog\ngreen,1,2012-03-01,cat\n");
  const auto scored =
      test::succeeded(muster.run({"evaluate", "run.json", "--set", "data.test=test.csv", "--json", "-"}));
  const auto json = parseJson(scored.out).as_object();
  CHECK(json.at("task") == "classification");
  CHECK(json.at("examples") == 6);
  CHECK(json.at("accuracy").to_number<double>() == doctest::Approx(4.0 / 6));
  const auto& classes = json.at("classes").as_array();
  REQUIRE(classes.size() == 2);
  const auto& cat = classes[0].as_object();
  CHECK(cat.at("name") == "cat");
  CHECK(cat.at("examples") == 4);
  CHECK(cat.at("precision").to_number<double>() == doctest::Approx(3.0 / 4));
  CHECK(cat.at("recall").to_number<double>() == doctest::Approx(3.0 / 4));
  CHECK(classes[1].at("recall").to_number<double>() == doctest::Approx(1.0 / 2));
  CHECK(classes[1].at("predictedAs").as_array().at(0).to_number<double>() == 1);
  const auto missing = muster.run({"evaluate", "run.json", "--on", "train"});
  CHECK(missing.exit != 0);
  CHECK(contains(missing.err, "rows.csv"));
}

TEST_CASE("a training that predicts held-out rows no better than a guess says so") {
  const Tables muster;
  std::string text = "a,b,rare,number\n";
  for (int i = 0; i < 200; ++i)
    text +=
        fmt::format("{},{},{},{}\n", i % 13, i % 7, i % 10 == 0 ? "yes" : "no", i % 11 * 100 + 7 * (i % 17));
  muster.write("rows.csv", text);
  const std::vector<std::string> still{"--set", "network.updater.learningRate=0"};
  const auto classes = test::succeeded(muster.trained({"rows.csv", "--label", "rare"}, still));
  CHECK_MESSAGE(contains(classes.err,
                         "warning: the 30 held-out examples are predicted no better than by the "
                         "commonest class no for all (accuracy 0."),
                classes.err);
  CHECK_MESSAGE(contains(classes.err, ", and 0.9000): the inputs may not tell it"), classes.err);
  const auto numbers =
      test::succeeded(muster.trained({"rows.csv", "--label", "number", "--regression"}, still));
  CHECK_MESSAGE(contains(numbers.err, "predicted no better than by the mean of number (R2 -"), numbers.err);
  muster.write("rows.csv", animals());
  CHECK(!contains(muster.trained({"rows.csv", "--label", "kind"}).err, "held-out"));
}

TEST_CASE("a model of other columns is refused before a remark on what it held out") {
  const Tables muster;
  muster.write("rows.csv", animals());
  test::succeeded(muster.trained({"rows.csv", "--label", "kind"}, {"--epochs", "1"}));
  test::succeeded(muster.run({"train", "run.json", "--epochs", "1", "--set", "training.model=m.safetensors",
                              "--set", "data.validationExamples=9", "--set", "training.pinThreads=false"}));
  const Texts evaluate{"evaluate", "run.json", "m.safetensors", "--on", "validation"};
  const std::string remark = "m.safetensors: was trained with data.validationExamples 9 (now 22)";
  CHECK(contains(test::succeeded(muster.run(evaluate)).err, remark));
  auto text = animals();
  text.replace(text.find("kind"), 4, "sort");
  muster.write("rows.csv", text);
  auto renamed = evaluate;
  renamed.insert(renamed.end(), {"--set", "data.label=sort"});
  const auto refused = test::errorOf(muster.run(renamed));
  CHECK_MESSAGE(contains(refused, "the column of the classes is sort in rows.csv, and kind in "), refused);
  CHECK_MESSAGE(!contains(refused, remark), refused);
}

TEST_CASE("a rare class with a weight is not judged by the commonest class") {
  const Tables muster;
  std::string text = "a,kind\n";  // "yes" is one in ten, and in the half with a = 1
  for (int i = 0; i < 400; ++i)
    text += fmt::format("{},{}\n", i % 10 < 5 ? 1 : 0, i % 10 == 0 ? "yes" : "no");
  muster.write("rows.csv", text);
  const std::string warning = "better than by the commonest class no";
  const auto plain = test::succeeded(muster.trained({"rows.csv", "--label", "2"}, {"--set", "data.label=2"}));
  CHECK_MESSAGE(contains(plain.err, warning), plain.err);
  const auto weighted = test::succeeded(
      muster.trained({"rows.csv", "--label", "kind"}, {"--set", "data.classWeights={\"yes\": 9}"}));
  CHECK_MESSAGE(!contains(weighted.err, "held-out"), weighted.err);
  CHECK_MESSAGE(contains(weighted.out, "class weights: no 1, yes 9\n"), weighted.out);
  CHECK(contains(test::succeeded(muster.run({"plan", "run.json", "--set", "data.classWeights.yes=9"})).out,
                 "class weights: no 1, yes 9\n"));
}

TEST_CASE("a table whose columns are separated otherwise, or with one number to predict, is refused") {
  const Tables muster;
  muster.write("rows.csv", "a;b\n1,5;2,5\n2,5;3,5\n");
  CHECK(contains(muster.run({"example", "rows.csv", "--separator", ","}).err,
                 "this file seems to have \";\" between its columns"));
  muster.write("rows.csv", "a,b\n1,2\n5,2\n7,2\n");
  CHECK(contains(
      muster.run({"example", "rows.csv", "--regression"}).err,
      "column b is to be predicted, and every row to train with has \"2\"; a regression needs different "
      "numbers, and --label NAME names another column"));
}

TEST_CASE("classes that were renamed, or columns, are refused by name") {
  const Tables muster;
  muster.write("rows.csv", animals());
  REQUIRE(muster.trained({"rows.csv"}, {"--set", "training.epochs=1", "--set", "data.test=rows.csv"}).exit ==
          0);
  const auto problem = [&](const std::string& command, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{command, "run.json", "--set", "data.test=rows.csv"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::errorOf(muster.run(arguments));
  };
  // Weights for other rows are read as the model reads them, though their median differs.
  std::string others = animals();
  for (auto at = others.find(",4000,"); at != others.npos; at = others.find(",4000,"))
    others.replace(at, 6, ",9999,");
  muster.write("others.csv", others);
  for (const std::string command : {"plan", "train"})
    CHECK(muster
              .run({command, "run.json", "--set", "data.train=others.csv", "--set", "training.devices=cpu",
                    "--set", "training.pinThreads=false", "--set", "training.epochs=1", "--set",
                    "training.initialModel=rows.safetensors", "--set", "training.model=second.safetensors"})
              .exit == 0);
  std::string renamed = animals();
  for (auto at = renamed.find("cat"); at != renamed.npos; at = renamed.find("cat"))
    renamed.replace(at, 3, "elk");
  muster.write("rows.csv", renamed);
  const std::string difference = "class 0 is dog in rows.csv, and cat in the model";
  CHECK(contains(problem("evaluate", {"--on", "train"}), difference));
  CHECK(contains(problem("predict", {"--on", "train"}), difference));
  CHECK(
      contains(problem("train", {"--set", "training.resume=rows.safetensors", "--set", "training.epochs=2"}),
               difference));
  CHECK(contains(problem("train", {"--set", "training.initialModel=rows.safetensors"}), difference));
  std::string moved = animals();
  moved.replace(moved.find("size"), 4, "mass");
  muster.write("rows.csv", moved);
  CHECK(contains(problem("evaluate", {"--on", "train"}),
                 "column 2 is mass in rows.csv, and size in the model"));
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
  const auto run =
      test::succeeded(muster.trained({"rows.csv", "--regression"}, {"--set", "data.test=rows.csv"}));
  muster.write("new.csv", "colour,x\nblue,5\nred,2\n");
  const auto predicted = test::succeeded(muster.run({"predict", "rows.safetensors", "new.csv"}));
  const auto lines = linesOf(predicted.out);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == "prediction");
  CHECK(std::stod(lines[1]) == doctest::Approx(115000).epsilon(0.02));
  CHECK(std::stod(lines[2]) == doctest::Approx(111000).epsilon(0.02));
  const auto own = linesOf(muster.run({"predict", "run.json", "--set", "data.test=rows.csv"}).out);
  REQUIRE(own.size() == 201);
  CHECK(own[0] == "example,label,prediction");
  CHECK(own[1].starts_with("0,105000,10"));
  const auto rows = linesOf(text);
  for (std::size_t i = 1; i < rows.size(); ++i)
    CHECK(own[i].starts_with(fmt::format("{},{},", i - 1, rows[i].substr(rows[i].rfind(',') + 1))));

  // The table is in the units of the predictions.
  double absolute = 0;
  for (std::size_t i = 1; i < own.size(); ++i) {
    const auto label = own[i].find(','), prediction = own[i].rfind(',');
    absolute +=
        std::abs(std::stod(own[i].substr(label + 1)) - std::stod(own[i].substr(prediction + 1))) / 200;
  }
  const auto scores = muster.run({"evaluate", "run.json", "--set", "data.test=rows.csv"});
  CAPTURE(scores.out);
  const auto table = linesOf(scores.out);
  REQUIRE(table.size() == 4);
  CHECK(table[0].starts_with("200 examples, 1 column: R2 "));
  CHECK(table[0].ends_with(", in the column's own units"));
  CHECK(table[3].starts_with("     price "));
  std::istringstream numbers(table[3].substr(10));
  double squared = 0, root = 0, mean = 0;
  numbers >> squared >> root >> mean;
  CHECK(mean == doctest::Approx(absolute).epsilon(1e-3));
  CHECK(root >= mean);
  CHECK(squared == doctest::Approx(root * root).epsilon(1e-4));
}

TEST_CASE("muster example asks for what a table does not say") {
  const Tables muster;
  const auto problem = [&](const std::string& text, const std::vector<std::string>& more = {}) {
    muster.write("rows.csv", text);
    std::vector<std::string> arguments{"example", "rows.csv"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto run = muster.run(arguments);
    CHECK(run.exit != 0);
    return run.err;
  };
  CHECK(contains(problem("5.1,3.5,setosa\n4.9,3.0,setosa\n"), "set header to false (--no-header)"));
  std::string decimals = "x,y\n";
  for (int i = 0; i < 100; ++i) decimals += fmt::format("{}.5,{}.25\n", i % 7, i);
  CHECK(contains(problem(decimals),
                 "column y has 100 different numbers, too many to be classes; to predict a number, "
                 "ask for a regression (--regression)"));
  muster.write("rows.csv", decimals);
  CHECK(muster.run({"example", "rows.csv", "--regression"}).exit == 0);
  CHECK(contains(problem("a;b\n1,5;x\n2,5;y\n1,5;x\n"),
                 "column a has decimal commas, as \"1,5\"; write points"));
  CHECK(contains(problem("a,kind\n1.5,cat\n2.5,dog\n", {"--label", "knid"}), "the nearest of its 2 is kind"));
  muster.write("rows.csv", "a,kind\n1.5,cat\n2.5,dog\n");
  CHECK(contains(muster.run({"example", "rows.csv"}).err,
                 "the label is the last column, kind; --label NAME names another one"));
}
namespace {

/// 150 rows in another order, from a row on.
std::string turned(const std::string& table, std::size_t from) {
  auto lines = linesOf(table);
  std::rotate(lines.begin() + 1, lines.begin() + static_cast<std::ptrdiff_t>(from), lines.end());
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

}  // namespace

TEST_CASE("a training is not resumed on data that have changed since, but their model may begin another") {
  const Tables muster;
  muster.write("rows.csv", animals());
  test::succeeded(muster.trained({"rows.csv", "--label", "kind"}, {"--epochs", "1"}));
  const auto resumed = [&](const std::string& rows, const std::vector<std::string>& how) {
    muster.write("rows.csv", rows);
    std::vector<std::string> arguments{"train", "run.json",      "--epochs", "2",       "--device",
                                       "cpu",   "--pin-threads", "false",    "--model", "second.safetensors"};
    arguments.insert(arguments.end(), how.begin(), how.end());
    return muster.run(arguments);
  };
  const std::vector<std::string> resume{"--resume", "rows.safetensors"};
  const auto refusal = [&](const std::string& rows) { return test::errorOf(resumed(rows, resume), 1); };
  const std::string head = "muster: rows.safetensors: was trained when rows.csv had ",
                    tail =
                        "; --set training.initialModel=rows.safetensors begins another training, with its "
                        "weights and the data of now\n";
  auto edited = animals();
  edited.replace(edited.rfind(",dog\n"), 4, ",cat");
  CHECK(refusal(edited) == head + "other examples, or other labels of them" + tail);
  const auto more = animals() + "151,red,,2015-03-01,cat\n152,green,,2015-03-01,dog\n";
  CHECK(refusal(more) == head + "150 examples (now 152)" + tail);
  CHECK(refusal(turned(animals(), 31)) == head + "the same examples in another order" + tail);
  CHECK_FALSE(std::filesystem::exists(muster.directory / "second.safetensors"));
  CHECK(resumed(animals(), resume).exit == 0);
  CHECK(resumed(more, {"--set", "training.initialModel=rows.safetensors"}).exit == 0);

  std::vector<std::string> moved = resume;  // what a file holds decides, not its name
  moved.insert(moved.end(), {"--set", "data.train=moved.csv"});
  muster.write("moved.csv", more);
  CHECK(test::errorOf(resumed(animals(), moved), 1) ==
        "muster: rows.safetensors: was trained with rows.csv, and moved.csv has 152 examples instead of 150" +
            tail);
  muster.write("moved.csv", animals());
  const auto same = test::succeeded(resumed(animals(), moved)).out;
  CHECK(contains(same, "resuming: rows.safetensors, with "));
  CHECK_FALSE(contains(same, "with other bits"));

  muster.write("test.csv", "colour,size,found,kind\nred,1,2012-03-01,cat\nblue,7,2012-03-01,dog\n");
  const std::vector<std::string> tested{"--set", "data.test=test.csv"};
  REQUIRE(resumed(animals(), tested).exit == 0);
  muster.write("test.csv", "colour,size,found,kind\nred,2,2012-03-01,cat\nblue,7,2012-03-01,dog\n");
  auto again = tested;
  again.insert(again.end(), {"--resume", "second.safetensors"});
  CHECK(contains(test::succeeded(resumed(animals(), again)).err,
                 "warning: second.safetensors: was trained when the test data had other examples, or other "
                 "labels of them; the scores are of those of now"));
}

TEST_CASE("what is held out stays held out when a model is evaluated, and changed data are refused") {
  const Tables muster;
  muster.write("rows.csv", animals());
  test::succeeded(muster.trained({"rows.csv", "--label", "kind"}, {"--epochs", "1", "--seed", "5"}));
  const auto predicted = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"predict", "run.json", "--on", "validation"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return muster.run(arguments);
  };
  const auto held = test::succeeded(predicted({"--set", "data.seed=5"})).out;
  CHECK(linesOf(held).size() == 23);
  CHECK(predicted({}).out == held);  // the run file's own seed is 123
  CHECK(predicted({"--set", "data.seed=9", "--set", "data.shuffle=false"}).out == held);
  CHECK(predicted({"--set", "data.splitSeed=5"}).out == held);
  const auto refused = [&](const std::vector<std::string>& more) {
    return test::errorOf(predicted(more), 1);
  };
  const std::string head = "muster: rows.safetensors: was trained with ";
  CHECK(contains(refused({"--set", "data.splitSeed=123"}),
                 head + "data.splitSeed 5 (now 123), so it may have"));
  CHECK(contains(refused({"--set", "data.validationExamples=40"}),
                 head + "data.validationExamples 22 (now 40), so"));
  CHECK(contains(refused({"--set", "data.validationExamples=0"}),
                 head + "data.validationExamples 22 (now 0), so"));
  CHECK(contains(refused({"--set", "data.splitSeed=-1"}), head + "data.splitSeed 5 (now -1), so"));
  CHECK(contains(refused({"--set", "data.testExamples=40"}), head + "data.testExamples 0 (now 40), so"));
  auto own = muster.read("run.json");
  const std::string count = "\"validationExamples\": 22";
  REQUIRE(contains(own, count));
  muster.write("run.json", own.replace(own.find(count), count.size(), "\"validationExamples\": 40"));
  const auto replaced = test::succeeded(predicted({}));
  CHECK(replaced.out == held);
  CHECK(contains(replaced.err,
                 "rows.safetensors: was trained with data.validationExamples 22 (now 40): what was held out "
                 "then is held out now"));
  muster.write("rows.csv", turned(animals(), 31));
  const std::string changed =
      "muster: rows.safetensors: was trained when rows.csv had the same examples in another order; --set "
      "data.test=FILE tests with all examples of a file";
  CHECK(contains(refused({}), changed));
  CHECK(contains(test::errorOf(muster.run({"evaluate", "run.json", "--on", "train"}), 1), changed));
  CHECK(contains(refused({}), "whatever the model was trained with, without --on validation\n"));
  CHECK(muster.run({"evaluate", "run.json", "--set", "data.test=rows.csv"}).exit == 0);
}

TEST_CASE("examples that were drawn to test a model are not validated with, and other tests are advised") {
  const Tables muster;
  muster.write("rows.csv", animals());
  const std::vector<std::string> drawn{"--epochs", "1", "--set", "data.testExamples=20"};
  test::succeeded(muster.trained({"rows.csv", "--label", "kind"}, drawn));
  const auto ran = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"predict", "run.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return muster.run(arguments);
  };
  const std::vector<std::string> validation{"--on", "validation"};
  const auto held = test::succeeded(ran(validation)).out;
  CHECK(linesOf(held).size() == 23);
  muster.write("new.csv", "colour,size,found,kind\nred,1,2012-03-01,cat\nblue,7,2012-03-01,dog\n");
  CHECK(ran({"--on", "validation", "--set", "data.test=new.csv"}).out == held);
  CHECK(linesOf(test::succeeded(ran({})).out).size() == 21);
  CHECK(linesOf(test::succeeded(ran({"--set", "data.validationExamples=9"})).out).size() == 21);
  auto own = muster.read("run.json");
  const std::string none = "\"testExamples\": 0";
  REQUIRE(contains(own, none));
  muster.write("run.json", own.replace(own.find(none), none.size(), "\"testExamples\": 20"));
  muster.write("rows.csv", turned(animals(), 31));
  CHECK(contains(test::errorOf(ran(validation), 1),
                 "--set data.testExamples=0 and --set data.test=FILE tests with all examples of a file, "
                 "whatever the model was trained with, without --on validation\n"));
  const auto tested =
      test::succeeded(ran({"--set", "data.testExamples=0", "--set", "data.test=new.csv"})).out;
  CHECK(linesOf(tested).size() == 3);
}

TEST_CASE("what a model learned is not held out later, and data of another file are not taken for its own") {
  const Tables muster;
  muster.write("rows.csv", animals());
  test::succeeded(muster.trained({"rows.csv", "--label", "kind"},
                                 {"--epochs", "1", "--set", "data.validationExamples=0", "--test-every", "0",
                                  "--set", "listeners.earlyStopping=null"}));
  const std::string problem = test::errorOf(muster.run({"evaluate", "run.json", "--on", "validation"}), 1);
  CHECK_MESSAGE(problem ==
                    "muster: rows.safetensors: was trained with data.validationExamples 0: no examples of "
                    "rows.csv were held out, so none of them tests it; --set data.test=FILE tests with all "
                    "examples of a file, whatever the model was trained with, without --on validation\n",
                problem);
  const std::vector<std::string> other{"evaluate", "run.json", "--on",
                                       "train",    "--set",    "data.train=other.csv"};
  muster.write("other.csv", animals() + "151,red,,2015-03-01,cat\n");
  CHECK(contains(test::succeeded(muster.run(other)).err,
                 "warning: rows.safetensors: was trained with rows.csv, and other.csv has other examples, of "
                 "which it may know some"));
  test::succeeded(muster.trained({"rows.csv", "--label", "kind"}, {"--epochs", "1"}));
  const std::string refused =
      "muster: rows.safetensors: was trained with rows.csv, and other.csv has 151 examples instead of 150; "
      "--set data.test=FILE tests with all examples of a file, whatever the model was trained with, without "
      "--on validation\n";
  for (const std::string command : {"evaluate", "predict"})
    CHECK(test::errorOf(
              muster.run({command, "run.json", "--on", "validation", "--set", "data.train=other.csv"}), 1) ==
          refused);
  muster.write("other.csv", turned(animals(), 31));
  CHECK(
      contains(test::errorOf(muster.run(other), 1),
               "rows.safetensors: was trained with rows.csv, and other.csv has the same examples in another "
               "order; "));
  muster.write("other.csv", animals());
  CHECK_FALSE(contains(test::succeeded(muster.run(other)).err, "warning"));

  muster.write("other.csv", "colour,size,found,kind\nred,1,2012-03-01,cat\nblue,7,2012-03-01,dog\n");
  const std::vector<std::string> test{"evaluate", "run.json", "--set", "data.train=other.csv", "--set"};
  auto same = test, own = test;
  same.push_back("data.test=other.csv");
  CHECK(test::succeeded(muster.run(same)).err.empty());  // the model has not learned them
  own.push_back("data.test=rows.csv");
  CHECK(contains(test::succeeded(muster.run(own)).err,
                 "warning: the test rows are the training rows (data.test rows.csv, data.train rows.csv)"));
  muster.write("rows.csv", animals() + "151,red,,2015-03-01,cat\n");
  CHECK(contains(test::succeeded(muster.run(own)).err,
                 "warning: rows.safetensors was trained when rows.csv had 150 examples (now 151), so it may "
                 "have learned some of the rows that test it"));
}

TEST_CASE("a test with rows of the training is named by plan, train, the report and evaluate") {
  const Tables muster;
  muster.write("rows.csv", animals());
  muster.write("copy.csv", turned(animals(), 31));
  const std::string warning =
      "the test rows are the training rows (data.test copy.csv, data.train rows.csv), so the scores on them "
      "say nothing of new rows";
  std::vector<std::string> tested{"--epochs", "1", "--set", "data.test=copy.csv", "--json", "result.json"};
#ifdef MUSTER_WITH_PAGE
  tested.insert(tested.end(), {"--report", "report"});
#endif
  const auto trained = test::succeeded(muster.trained({"rows.csv", "--label", "kind"}, tested));
  CHECK(contains(trained.err, "warning: " + warning));
  const auto result = parseJson(muster.read("result.json"));
  CHECK(std::string(result.at("warnings").at(0).as_string()) == warning);
#ifdef MUSTER_WITH_PAGE
  CHECK(contains(muster.read("report/report.html"), warning));
  CHECK(contains(muster.read("report/confusion.txt"), "\n" + warning + "\n"));
#endif
  const std::vector<std::string> set{"--set", "data.test=copy.csv"};
  CHECK(
      contains(muster.run({"plan", "run.json", set[0], set[1], "--device", "cpu"}).out, "note: " + warning));
  CHECK(contains(muster.run({"evaluate", "run.json", set[0], set[1]}).err, "warning: " + warning));
  CHECK(contains(muster.run({"evaluate", "run.json", "--set", "data.test=rows.csv"}).err,
                 "warning: the test rows are the training rows (data.test rows.csv, data.train rows.csv)"));
  muster.write("copy.csv", "colour,size,found,kind\nred,1,2012-03-01,cat\nblue,7,2012-03-01,dog\n");
  CHECK(muster.run({"evaluate", "run.json", set[0], set[1]}).err.empty());

  const auto all = linesOf(animals());
  std::string some;
  for (std::size_t line = 0; line < 51; ++line) some += std::string(all[line]) + "\n";
  muster.write("copy.csv", some + "151,red,,2015-03-01,\n");
  const auto evaluated = [&] { return muster.run({"evaluate", "run.json", set[0], set[1]}); };
  const auto shared = test::succeeded(evaluated()).err;
  CHECK(contains(shared, "1 row without kind not tested"));
  CHECK(shared.find("1 row without kind not tested") == shared.rfind("1 row without kind not tested"));
  CHECK(contains(shared,
                 "warning: 50 of 50 test rows are equal to training rows (data.test copy.csv, data.train "
                 "rows.csv), so the scores say too little of new rows"));
  muster.write("rows.csv", animals() + "151,red,,2015-03-01,cat\n");  // not what it was trained with
  CHECK_FALSE(contains(test::succeeded(evaluated()).err, "warning"));
  std::filesystem::remove(muster.directory / "rows.csv");
  CHECK_FALSE(contains(test::succeeded(evaluated()).err, "warning"));
}

TEST_CASE("a training that begins with a model that knows some of the rows held out now says so") {
  const Tables muster;
  muster.write("rows.csv", animals());
  test::succeeded(muster.trained({"rows.csv", "--label", "kind"}, {"--epochs", "1", "--seed", "5"}));
  const auto warnings = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{
        "--epochs", "1", "--model", "second.safetensors", "--set", "training.initialModel=rows.safetensors"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::succeeded(muster.trained({"rows.csv", "--label", "kind"}, arguments)).err;
  };
  const std::string head = "warning: training.initialModel rows.safetensors was trained ",
                    known = head + "with examples that are held out now";
  CHECK(contains(warnings({"--seed", "9"}), known + "; --set data.splitSeed=5 holds out the same"));
  CHECK_FALSE(contains(warnings({"--seed", "9", "--set", "data.splitSeed=5"}), "held out now"));
  CHECK_FALSE(contains(warnings({"--seed", "5"}), "held out now"));
  CHECK_FALSE(contains(warnings({"--seed", "5", "--set", "data.validationExamples=9"}), "held out now"));
  CHECK(contains(warnings({"--seed", "5", "--set", "data.validationExamples=40"}), known + "\n"));
  const std::vector<std::string> compared{"compare", "run.json",
                                          "--arm",   "averaging",
                                          "--seeds", "1",
                                          "--out",   "compared",
                                          "--set",   "training.epochs=1",
                                          "--set",   "data.splitSeed=9",
                                          "--set",   "training.initialModel=rows.safetensors"};
  CHECK(
      contains(test::succeeded(muster.run(compared)).out, "Warning: training.initialModel rows.safetensors"));
  muster.write("rows.csv", turned(animals(), 31));
  CHECK(contains(warnings({"--seed", "5"}), known + "\n"));
  muster.write("rows.csv", animals() + "151,red,,2015-03-01,cat\n");
  const std::string more = head +
                           "when rows.csv had 150 examples (now 151), so it may have learned some of "
                           "those held out now";
  for (const std::string seed : {"5", "9"})
    CHECK(contains(warnings({"--seed", seed}), more + "; --set data.test=FILE tests with new rows\n"));
  CHECK(contains(warnings({"--set", "data.testExamples=20"}),
                 more + "; --test-examples 0 and --set data.test=FILE tests with new rows\n"));
  muster.write("new.csv", "colour,size,found,kind\nred,1,2012-03-01,cat\nblue,7,2012-03-01,dog\n");
  CHECK(contains(warnings({"--set", "data.test=new.csv"}), more + "\n"));
  muster.write("new.csv", animals());
  CHECK(contains(warnings({"--set", "data.test=new.csv"}), head + "with the test rows\n"));

  muster.write("more.csv", animals() + "151,red,,2015-03-01,cat\n");
  muster.write("rows.csv", animals());
  const std::string other =
                        "training.initialModel rows.safetensors was trained with rows.csv, and more.csv "
                        "has 151 examples instead of 150, so it may have learned some of those held out "
                        "now; ",
                    advice = "data.test=FILE tests with new rows\n";
  const std::vector<std::string> begun{"--set", "training.initialModel=rows.safetensors", "--set",
                                       "data.train=more.csv"};
  CHECK(contains(warnings({begun[2], begun[3]}), "warning: " + other + "--set " + advice));
  CHECK(
      contains(test::succeeded(muster.run({"plan", "run.json", begun[0], begun[1], begun[2], begun[3]})).out,
               "note: " + other + advice));
  CHECK_FALSE(contains(warnings({begun[2], begun[3], "--set", "data.validationExamples=0", "--test-every",
                                 "0", "--set", "listeners.earlyStopping=null"}),
                       "held out now"));
}

TEST_CASE("what a model's own beginnings have learned is known to its evaluation and to the next training") {
  const Tables muster;
  muster.write("rows.csv", animals());
  muster.write("more.csv", animals() + "151,red,,2015-03-01,cat\n");
  const auto trained = [&](const std::string& from, const std::string& model,
                           const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"--epochs", "1",     "--model",
                                       model,      "--set", "training.initialModel=" + from};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::succeeded(muster.trained({"rows.csv", "--label", "kind"}, arguments)).err;
  };
  const auto on = [&](const std::string& part, const std::string& model, const std::string& set) {
    return test::succeeded(muster.run({"evaluate", "run.json", model, "--on", part, "--set", set})).err;
  };
  const std::string first = "a.safetensors", second = "b.safetensors", third = "c.safetensors",
                    more = "data.train=more.csv", rows = "data.train=rows.csv";
  test::succeeded(muster.trained({"rows.csv", "--label", "kind"}, {"--epochs", "1", "--model", first}));
  trained(first, second, {"--set", more});
  const std::string began =
      second + " began with " + first +
      ", which was trained with rows.csv, and more.csv "
      "has 151 examples instead of 150, so it may have learned some of those held out now";
  CHECK(contains(on("validation", second, more), "warning: " + began));
  CHECK_FALSE(contains(on("train", second, more), began));
  CHECK(contains(trained(second, third, {"--set", more}), "warning: training.initialModel " + began));
  CHECK(contains(on("validation", third, more), third + " began with " + first));
  CHECK(contains(test::succeeded(muster.run({"train", "run.json", "--resume", third, "--epochs", "2",
                                             "--device", "cpu", "--pin-threads", "false", "--set", more}))
                     .err,
                 "warning: training.resume " + third + " began with " + first));
  CHECK(contains(on("test", third, "data.test=rows.csv"),
                 "warning: " + third + " began with " + first + ", which was trained with the test rows\n"));
  trained(first, second);  // with the same rows held out
  CHECK_FALSE(contains(on("validation", second, rows), "began with"));

  Network::load(muster.directory / first)->save(muster.directory / "plain.safetensors");
  const std::string silent =
      "plain.safetensors does not say which rows it has learned: it may know rows that are held out now\n";
  CHECK(contains(trained("plain.safetensors", second), "warning: training.initialModel " + silent));
  CHECK(contains(on("validation", second, rows),
                 "warning: b.safetensors began with plain.safetensors, which does not say which rows"));
}

TEST_CASE("predictions of held-out rows have the numbers of the rows, and columns of theirs") {
  const Tables muster;
  auto rows = animals();
  rows.insert(rows.find("1,red"), "0,red,1,2012-01-01,\n");  // without a label: row 0 is left out
  const auto table = linesOf(rows);
  rows.replace(rows.find("0,red"), 5, "0,\"r\ned\"");  // lines are not rows
  rows.insert(rows.find("1,red"), "\n");
  muster.write("rows.csv", rows);
  test::succeeded(muster.trained({"rows.csv", "--label", "kind"}, {"--epochs", "1"}));
  for (const std::string on : {"validation", "train"}) {
    const auto out = test::succeeded(muster.run(
        {"predict", "run.json", "--on", on, "--keep", "id", "--keep", "kind", "--set", "data.batch=10"}));
    const auto lines = linesOf(out.out);
    REQUIRE(lines.size() == (on == "train" ? 129 : 23));
    CHECK(lines[0] == "id,kind,example,label,prediction,probability,probability of cat,probability of dog");
    for (std::size_t i = 1; i < lines.size(); ++i) {
      std::istringstream cells(lines[i]);
      std::string id, kind, number, label;
      for (auto* cell : {&id, &kind, &number, &label}) std::getline(cells, *cell, ',');
      CHECK(kind == label);
      CHECK(table.at(std::stoul(number) + 1).starts_with(id + ","));
    }
  }
  const auto problem =
      test::errorOf(muster.run({"predict", "run.json", "--on", "validation", "--keep", "nmae"}), 1);
  CHECK_MESSAGE(contains(problem, "nmae"), problem);
  const auto twice = [&](const std::vector<std::string>& keep) {
    std::vector<std::string> arguments{"predict", "rows.safetensors", "rows.csv"};
    arguments.insert(arguments.end(), keep.begin(), keep.end());
    return test::errorOf(muster.run(arguments));
  };
  CHECK(contains(twice({"--keep", "id,kind", "--keep", "id"}), "columns to keep: id is named twice"));
  auto renamed = rows;
  muster.write("rows.csv", renamed.replace(renamed.find("id"), 2, "prediction"));
  CHECK(
      contains(twice({"--keep", "prediction"}),
               "columns to keep: the output has a column prediction of its own; keep others, or rename it in "
               "the table"));
  muster.write("digits.json", muster.run({"example"}).out);
  const std::vector<std::string> few{"digits.json", "--set", "data.type=generated", "--set",
                                     "data.testExamples=9"};
  auto train = few, predict = few;
  train.insert(train.begin(), "train");
  train.insert(train.end(),
               {"--train-examples", "40", "--epochs", "1", "--device", "cpu", "--pin-threads", "false"});
  REQUIRE(muster.run(train).exit == 0);
  predict.insert(predict.begin(), "predict");
  auto fewer = predict;
  fewer.insert(fewer.end(), {"--on", "train", "--set", "data.trainExamples=12"});
  CHECK(linesOf(test::succeeded(muster.run(fewer)).out).size() == 13);
  predict.insert(predict.end(), {"--keep", "id"});
  CHECK(contains(test::errorOf(muster.run(predict)),
                 "--keep is for a table, and the data are of type generated"));
}

}  // namespace muster
