#include "examples/compare_convergence/options.h"

#include <cmath>
#include <iostream>
#include <limits>

#include "examples/compare_convergence/lists.h"
#include "examples/support/command_line.h"
#include "examples/support/data_options.h"

namespace convergence {
namespace {

namespace po = boost::program_options;
using example::said;
using example::withDefault;
using muster::require;

constexpr std::string_view kIntroduction =
    R"(Compares model averaging with synchronous training: trains the same network on equal samples in all ways that
the lists below make together, with several seeds, and one worker at the batch B and at W B beside them.

  compare_convergence                                    a small grid: MNIST, two workers, some minutes
  compare_convergence --mode averaging,synchronous --frequency 1,5,25 --workers 2,4 --seeds 1,2,3,4,5
  compare_convergence --lr-scaling none,linear --post-local 0,200 --updater nesterovs:0.02,adam
  compare_convergence --grid resnet18                    ResNet-18 on a part of MNIST, plain SGD
  compare_convergence --grid readme --link 10Gbit,50us   the README's grid, also projected on a network

In the directory --out: results.jsonl (every finished run), points.csv, summary.csv and merges/*.csv (the
numbers), table.md (arms beside one worker on the joined batch), report.html (tables and plots) and, with
--link, projection.csv. Ctrl-C stops it, and the same command goes on from there: a run that is finished is
not trained again. Then --target and --link may be others, all else may not.

--grid names a set of options, and what else is said replaces its own:
  small     the defaults below
  readme    --workers 2,4 --frequency 1,3,10,30 --epochs 3 --data mnist
  resnet18  --model resnet18 --data mnist --updater sgd:0.1 --lr-scaling linear --l2 0 --mode averaging
            --frequency 1,4 --batch 32 --train-examples 12800 --test-examples 2000, tested at the end

Every arm sees the same samples: --epochs passes over the images, in an order that depends on the seed only.
The merged model is tested at the first merge at or after each multiple of --test-every samples; the time that
this takes is not counted as training.
)";

/// Lists as the command line has them.
struct Texts {
  std::string grid = "small";
  std::string mode = "averaging,synchronous,shared";
  std::string workers = "2";
  std::string frequency = "1,10,30";
  std::string batch = "64";
  std::string updater = "nesterovs:0.01";
  std::string scaling = "none";
  std::string postLocal = "0";
  std::string seeds = "1,2,3";
  std::string link;
  std::string out = "comparison";
  double targetPercent = 97;
  std::int64_t testEvery = 0;
};

po::options_description describeGrid(Texts& t) {
  po::options_description grid("The grid (lists, as in 1,3,10)", example::kLineLength);
  grid.add_options()  //
      ("grid", withDefault(t.grid, "NAME"),
       "small, readme or resnet18, as above")  //
      ("mode", withDefault(t.mode, "LIST"),
       "averaging (of parameters), synchronous (gradients averaged every iteration) and shared (encoded "
       "gradients)")                                                                                 //
      ("workers", withDefault(t.workers, "LIST"), "workers of an arm, from 2")                       //
      ("frequency", withDefault(t.frequency, "LIST"), "iterations of each worker between averages")  //
      ("batch", withDefault(t.batch, "LIST"), "examples of one worker in an iteration, B")           //
      ("updater", withDefault(t.updater, "LIST"),
       "NAME or NAME:RATE of sgd, nesterovs, adam, adamw, rmsprop and adagrad; the learning rate is 0.01, or "
       "0.001 with adam, adamw and rmsprop")  //
      ("lr-scaling", withDefault(t.scaling, "LIST"),
       "none, linear or sqrt: what the learning rate is multiplied by for W workers, and for one at W B")  //
      ("post-local", withDefault(t.postLocal, "LIST"),
       "iterations that average every time before the frequency holds (post-local SGD); 0: none")  //
      ("seeds", withDefault(t.seeds, "LIST"),
       "of the first weights and of the order of the examples, the same in all arms");
  return grid;
}

po::options_description describeTraining(Options& o, Texts& t) {
  po::options_description training("Training", example::kLineLength);
  training.add_options()  //
      ("model", withDefault(o.model, "NAME"),
       "convnet, that of Deeplearning4j's acceptance test, or resnet18")  //
      ("width", withDefault(o.width, "N"),
       "channels of resnet18's first stage, where a narrower one than the paper's will do")  //
      ("epochs", withDefault(o.epochs, "N"), "passes over the data")                         //
      ("test-every", example::value(t.testEvery, "N"),
       "samples between tests (default: a tenth of an epoch)")            //
      ("momentum", withDefault(o.momentum, "X"), "of nesterovs")          //
      ("l2", withDefault(o.l2, "X"), "L2 regularisation of the weights")  //
      ("pin-threads", withDefault(o.pinThreads, "BOOL"),
       "pin each worker to cores of its own, where there are enough");
  return training;
}

po::options_description describeOutput(Texts& t) {
  po::options_description output("Results", example::kLineLength);
  output.add_options()  //
      ("target", withDefault(t.targetPercent, "PERCENT"),
       "test accuracy whose time and samples are compared")  //
      ("link", example::value(t.link, "BANDWIDTH,LATENCY"),
       "as in 10Gbit,50us: also say what each arm would take where 2 to 1024 workers are joined by such "
       "links")                                                                         //
      ("out", withDefault(t.out, "DIR"), "where the results go, and are gone on from")  //
      ("help", "this text");
  return output;
}

void takePreset(Options& o, Texts& t, const po::variables_map& given) {
  require(t.grid == "small" || t.grid == "readme" || t.grid == "resnet18",
          "--grid must be small, readme or resnet18, got {}", t.grid);
  if (t.grid == "small") return;
  const auto preset = [&](const char* option, auto& target, auto value) {
    if (!said(given, option)) target = value;
  };
  preset("data", o.data.name, "mnist");
  if (t.grid == "readme") {
    preset("workers", t.workers, "2,4");
    preset("frequency", t.frequency, "1,3,10,30");
    preset("epochs", o.epochs, 3);
    return;
  }
  preset("model", o.model, "resnet18");
  preset("mode", t.mode, "averaging");
  preset("frequency", t.frequency, "1,4");
  preset("batch", t.batch, "32");
  preset("updater", t.updater, "sgd:0.1");
  preset("lr-scaling", t.scaling, "linear");
  preset("l2", o.l2, 0.0);
  // 200 updates of each of two workers: minutes a run, rather than hours.
  constexpr std::int64_t kExamples = 200 * 2 * 32, kTestExamples = 2000;
  if (!said(given, "examples") && !said(given, "train-examples")) o.data.trainExamples = kExamples;
  if (!said(given, "examples") && !said(given, "test-examples")) o.data.testExamples = kTestExamples;
  preset("test-every", t.testEvery, *o.data.trainLimit() * o.epochs);
}

GridLists listsOf(const Texts& t) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  return {.modes = parseChoices<Mode>("mode", t.mode, {Mode::Averaging, Mode::Synchronous, Mode::Shared}),
          .workers = parseNumbers("workers", t.workers, 2, 1024),
          .frequencies = parseNumbers("frequency", t.frequency, 1, kMost),
          .batches = parseNumbers("batch", t.batch, 1, 65536),
          .updaters = parseUpdaters("updater", t.updater),
          .scalings = parseChoices<Scaling>("lr-scaling", t.scaling,
                                            {Scaling::None, Scaling::Linear, Scaling::SquareRoot}),
          .synchronousUntil = parseNumbers("post-local", t.postLocal, 0, kMost),
          .seeds = parseNumbers("seeds", t.seeds, 0, std::numeric_limits<std::int64_t>::max())};
}

void checkRanges(const Options& o) {
  require(o.model == "convnet" || o.model == "resnet18", "--model must be convnet or resnet18, got {}",
          o.model);
  example::requireRange<std::int64_t>("width", o.width, 1, 1024);
  example::requireRange<std::int64_t>("epochs", o.epochs, 1, 1'000'000);
  if (o.testEvery) example::requireAtLeast<std::int64_t>("test-every", *o.testEvery, 1);
  require(o.momentum >= 0 && o.momentum < 1, "--momentum must be at least 0 and below 1, got {}", o.momentum);
  require(o.l2 >= 0 && std::isfinite(o.l2), "--l2 must be a number and not negative, got {}", o.l2);
  require(o.target >= 0.01 && o.target < 1,
          "--target must be at least 1 and below 100, a percentage (97, not 0.97), got {}", o.target * 100);
  require(!o.out.empty(), "--out needs the name of a directory");
  example::checkData(o.data);
}

/// Options that would have no effect are refused rather than ignored.
void checkCombinations(const Options& o, const po::variables_map& given) {
  const auto averaging = std::ranges::find(o.lists.modes, Mode::Averaging) != o.lists.modes.end();
  for (const char* option : {"frequency", "post-local"})
    require(averaging || !said(given, option), "--{} is of the mode averaging, which --mode does not name",
            option);
  require(o.model == "resnet18" || !said(given, "width"), "--width is of the model resnet18, not of {}",
          o.model);
  const auto isNesterovs = [](const UpdaterChoice& updater) { return updater.name == "nesterovs"; };
  require(!said(given, "momentum") || std::ranges::any_of(o.lists.updaters, isNesterovs),
          "--momentum is of the updater nesterovs, which --updater does not name");
}

template <typename E>
std::string namesOf(const std::vector<E>& values) {
  std::vector<std::string_view> names;
  for (const E value : values) names.push_back(muster::nameOf(value));
  return fmt::format("{}", fmt::join(names, ","));
}

}  // namespace

std::optional<Options> readOptions(int argc, const char* const* argv) {
  Options o;
  Texts t;
  po::options_description all(example::kLineLength);
  all.add(describeGrid(t))
      .add(describeTraining(o, t))
      .add(example::describeData(o.data))
      .add(describeOutput(t));
  const auto given = example::parseCommandLine(argc, argv, all);
  if (given.count("help") > 0) {
    std::cout << kIntroduction << all;
    return std::nullopt;
  }
  takePreset(o, t, given);
  o.lists = listsOf(t);
  if (said(given, "test-every") || t.testEvery > 0) o.testEvery = t.testEvery;
  o.target = t.targetPercent / 100;
  if (given.count("link") > 0) o.link = parseLink(t.link);
  o.linkText = t.link;
  o.out = t.out;
  checkRanges(o);
  checkCombinations(o, given);
  return o;
}

Recipe recipeOf(const Options& o, const example::DataSets& data, std::int64_t testEvery) {
  const auto list = [](const auto& values) { return fmt::format("{}", fmt::join(values, ",")); };
  const auto text = [](const auto& value) { return fmt::format("{}", value); };
  return {{"model", o.model},
          {"width", text(o.width)},
          {"mode", namesOf(o.lists.modes)},
          {"workers", list(o.lists.workers)},
          {"frequency", list(o.lists.frequencies)},
          {"batch", list(o.lists.batches)},
          {"updater", list(updaterTexts(o.lists.updaters))},
          {"lr-scaling", namesOf(o.lists.scalings)},
          {"post-local", list(o.lists.synchronousUntil)},
          {"seeds", list(o.lists.seeds)},
          {"epochs", text(o.epochs)},
          {"test-every", text(testEvery)},
          {"momentum", text(o.momentum)},
          {"l2", text(o.l2)},
          {"pin-threads", text(o.pinThreads)},
          {"data", data.name},
          {"examples", text(*data.train->examples())},
          {"test-examples", text(*data.test->examples())}};
}

}  // namespace convergence
