#include "examples/compare_convergence/options.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "examples/compare_convergence/lists.h"
#include "examples/support/command_line.h"
#include "muster/core/optim/updater.h"
#include "muster/parallel/strategies/named_strategy.h"

namespace convergence {
namespace {

using example::CommandLine;
using muster::require;

constexpr std::string_view kPurpose =
    R"(Compares model averaging with synchronous training: trains the same network on the same samples with every
combination of the lists below and several seeds, and for comparison one worker at the batch B and at W B.

)";

/// Examples of calls, with descriptions.
constexpr std::pair<std::string_view, std::string_view> kCalls[] = {
    {"", "a small grid: MNIST, two workers, some minutes"},
    {" --mode averaging,synchronous --frequency 1,5,25 --workers 2,4 --seeds 1,2,3,4,5",
     "two modes, three frequencies, five seeds"},
    {" --lr-scaling none,linear --post-local 0,200 --updater nesterovs:0.02,adam",
     "the learning rate with more workers"},
    {" --grid resnet18", "ResNet-18 on a part of MNIST, plain SGD"},
    {" --grid readme --link 10Gbit,50us", "the README's grid, also projected on a network"},
};
constexpr int kCallWidth = 55;

constexpr std::string_view kExplanation = R"(
In the directory --out: results.jsonl (every finished run), table.md (each arm, that is one setting, against
one worker on the joined batch), report.html (tables and curves, also projected on a network with --link) and
runs/*/*.curves.jsonl (the curves of each run, for `muster page`). Ctrl-C stops it, and the same command
continues: a finished run is not trained again. Only --target and --link may change then.

--grid names a set of options; options given beside it replace its own:
  small     the defaults below
  readme    --workers 2,4 --frequency 1,3,10,30 --epochs 3 --data mnist
  resnet18  --model resnet18 --data mnist --updater sgd:0.1 --lr-scaling linear --l2 0 --mode averaging
            --frequency 1,4 --batch 32 --train-examples 12800 --test-examples 2000, tested at the end
  rules     --data mixtures --model mlp --strategy (one of each kind) --workers 2,4,8 --frequency 10,30,100
            --batch 16 --updater nesterovs:0.02 --epochs 2, tested at the end

Every arm trains on the same samples: --epochs passes over the images, in an order that the seed determines.
The merged model is tested at the first merge at or after each multiple of --test-every samples; the time that
this takes is not counted as training.
)";

/// @param program  the name that the user calls.
std::string introduction(std::string_view program) {
  std::string text(kPurpose);
  for (const auto& [options, does] : kCalls) {
    const auto call = fmt::format("{}{}", program, options);
    const bool fits = call.size() < kCallWidth;
    text += fits ? fmt::format("  {:<{}}{}\n", call, kCallWidth, does)
                 : fmt::format("  {}\n  {:<{}}{}\n", call, "", kCallWidth, does);
  }
  return text.append(kExplanation);
}

/// The defaults that each name of --grid replaces.
const std::map<std::string, std::vector<std::pair<const char*, const char*>>> kGrids{
    {"small", {}},
    {"readme", {{"data", "mnist"}, {"workers", "2,4"}, {"frequency", "1,3,10,30"}, {"epochs", "3"}}},
    {"resnet18",
     {{"data", "mnist"},
      {"model", "resnet18"},
      {"mode", "averaging"},
      {"frequency", "1,4"},
      {"batch", "32"},
      {"updater", "sgd:0.1"},
      {"lr-scaling", "linear"},
      {"l2", "0"}}},
    {"rules",
     {{"data", "mixtures"},
      {"model", "mlp"},
      {"mode", ""},
      {"strategy",
       "averaging,bmuf,slowmo,diloco,lookahead,easgd,sma,adasum,overlapped,streaming,gossip,asynchronous:"
       "speeds=half,delayed-nesterov:speeds=half"},
      {"workers", "2,4,8"},
      {"frequency", "10,30,100"},
      {"batch", "16"},
      {"updater", "nesterovs:0.02"},
      {"epochs", "2"}}}};

void describeGrid(CommandLine& line, GridLists& lists) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const auto list = [&](const char* name, const char* preset, const std::string& help, auto& values,
                        auto parse) {
    line.addParsed(name, preset, "LIST", help,
                   [name, &values, parse](const std::string& text) { values = parse(name, text); });
  };
  const auto numbers = [](std::int64_t least, std::int64_t most) {
    return [=](const char* name, const std::string& text) { return parseNumbers(name, text, least, most); };
  };
  const auto choices = [](auto... allowed) {
    return [=](const char* name, const std::string& text) {
      return parseChoices(name, text, std::vector{allowed...});
    };
  };
  list("mode", "averaging,synchronous,shared",
       "averaging (of parameters), synchronous (gradients averaged every iteration) and shared (encoded "
       "gradients)",
       lists.modes, choices(Mode::Averaging, Mode::Synchronous, Mode::Shared));
  list("strategy", "",
       "strategies by name, trained besides the modes, with options after colons, as in "
       "diloco:rate=0.5:momentum=0.8, trained at each frequency (every=); speeds=1,0.5: one number a "
       "worker; speeds=half: one worker at half speed, however many there are; one without every= is "
       "trained once, and so is one that is also a mode; help: a table of all",
       lists.strategies,
       [](const char* name, const std::string& text) { return parseStrategies(name, text); });
  line.topic("strategy", [] { return muster::describeStrategies(2); });
  list("workers", "2", "workers of an arm, from 2", lists.workers, numbers(2, 1024));
  list("frequency", "1,10,30", "iterations of each worker between averages", lists.frequencies,
       numbers(1, kMost));
  list("batch", "64", "examples of one worker in an iteration, B", lists.batches, numbers(1, 65536));
  list("updater", "nesterovs:0.01",
       "NAME or NAME:RATE, with a name of " + muster::Updater::registry().names() +
           "; the learning rate is the updater's own, at most 0.01, unless it is given",
       lists.updaters, parseUpdaters);
  list(
      "lr-scaling", "none",
      "none, linear or sqrt: factor of the learning rate for W workers, and for one worker on batches of W B",
      lists.scalings, choices(Scaling::None, Scaling::Linear, Scaling::SquareRoot));
  list("post-local", "0",
       "first iterations, after each of which workers are averaged, before the frequency holds (post-local "
       "SGD); 0: none",
       lists.synchronousUntil, numbers(0, kMost));
  list("seeds", "1,2,3", "seed of the initial weights and of the order of the examples, the same in all arms",
       lists.seeds, numbers(0, std::numeric_limits<std::int64_t>::max()));
}

void describeTraining(CommandLine& line, Options& o) {
  line.group("Training");
  line.add("model", o.model, "NAME",
           "convnet (Deeplearning4j's acceptance test), resnet18 or mlp (one hidden layer of 64 units)",
           [](const char*, const std::string& name) {
             require(name == "convnet" || name == "resnet18" || name == "mlp",
                     "--model must be convnet, resnet18 or mlp, got {}", name);
           });
  line.add("width", o.width, "N", "channels of resnet18's first stage; 64 in the paper, fewer train faster",
           example::between(1, 1024));
  line.add("epochs", o.epochs, "N", "passes over the data", example::between(1, 1'000'000));
  line.add("lr-schedule", o.learningRateSchedule, "NAME",
           "constant, or cosine: from the learning rate to 0 along half a cosine, of sgd and nesterovs",
           [](const char*, const std::string& name) {
             require(name == "constant" || name == "cosine",
                     "--lr-schedule must be constant or cosine, got {}", name);
           });
  line.add("test-every", o.testEvery, "N", "samples between tests (default: a tenth of an epoch)",
           example::atLeast(1));
  line.add("momentum", o.momentum, "X", "momentum of nesterovs", example::belowOne);
  line.add("l2", o.l2, "X", "L2 regularisation of the weights", example::notNegative);
  line.add("pin-threads", o.pinThreads, "BOOL",
           "pin each worker to cores of its own, where there are enough");
}

void describeOutput(CommandLine& line, Options& o, double& targetPercent) {
  line.group("Results");
  line.add("target", targetPercent, "PERCENT", "test accuracy whose time and samples are compared",
           [](const char*, double percent) {
             require(percent >= 1 && percent < 100,
                     "--target must be at least 1 and below 100, a percentage (97, not 0.97), got {}",
                     percent);
           });
  line.addParsed(
      "link", "", "BANDWIDTH,LATENCY",
      "as in 10Gbit,50us: also estimate each arm's time with 2 to 1024 workers that such links connect",
      [&o](const std::string& text) {
        o.link = parseLink(text);
        o.linkText = text;
      });
  line.add("out", o.out, "DIR", "directory of the results; an interrupted run continues from it");
}

void takeGrid(const std::string& name, CommandLine& line, Options& o) {
  for (const auto& [option, text] : kGrids.at(name)) line.preset(option, text);
  const bool rules = name == "rules" && o.data.name == "mixtures";
  if (name != "resnet18" && !rules) return;
  if (!line.said("examples")) {  // resnet18: 200 updates for each of two workers, so a run takes minutes
    line.preset("train-examples", rules ? "96000" : "12800");
    line.preset("test-examples", rules ? "10000" : "2000");
  }
  line.preset("test-every", fmt::format("{}", *o.data.trainLimit() * o.epochs));
}

/// A rule that is a mode and a strategy is trained once: synchronous as the mode, to which others are
/// compared, averaging as the strategy, unless --post-local needs the mode.
void joinModes(Options& o, const CommandLine& line) {
  auto& modes = o.lists.modes;
  auto& strategies = o.lists.strategies;
  for (const Mode mode : {Mode::Averaging, Mode::Synchronous}) {
    const auto strategy = std::ranges::find(strategies, muster::nameOf(mode));
    if (strategy == strategies.end() || std::ranges::find(modes, mode) == modes.end()) continue;
    require(!line.said("mode"), "--mode and --strategy both name {}; name it in one of them", *strategy);
    if (mode == Mode::Synchronous || line.said("post-local"))
      strategies.erase(strategy);
    else
      std::erase(modes, mode);
  }
}

/// Rejects options that would have no effect.
void checkCombinations(const Options& o, const CommandLine& line) {
  o.data.check();
  example::WatchOptions::requireBuilt(line);
  if (std::ranges::find(o.lists.modes, Mode::Averaging) == o.lists.modes.end())
    line.refuse({"post-local"}, "needs the mode averaging, which --mode does not name");
  if (line.said("frequency") && !usesFrequency(o.lists))
    line.refuse({"frequency"}, o.lists.strategies.empty()
                                   ? "needs the mode averaging, which --mode does not name"
                                   : "needs the mode averaging, or a strategy with the option every, and "
                                     "--mode and --strategy name neither");
  const auto scheduled = [](const UpdaterChoice& u) { return u.name == "sgd" || u.name == "nesterovs"; };
  require(o.learningRateSchedule == "constant" || std::ranges::all_of(o.lists.updaters, scheduled),
          "--lr-schedule cosine needs the updater sgd or nesterovs, and --updater names another one");
  if (o.model != "resnet18") line.refuse({"width"}, fmt::format("needs the model resnet18, not {}", o.model));
  if (std::ranges::find(o.lists.updaters, "nesterovs", &UpdaterChoice::name) == o.lists.updaters.end())
    line.refuse({"momentum"}, "needs the updater nesterovs, which --updater does not name");
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
  std::string grid = "small";
  double targetPercent = 97;
  const auto program = argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "compare";
  const std::string text = introduction(program);
  CommandLine line(text);
  line.usage(fmt::format("{} [options]", program));
  line.group("The grid (lists, as in 1,3,10)");
  line.add("grid", grid, "NAME", "small, readme, resnet18 or rules, as above",
           [](const char*, const std::string& name) {
             require(kGrids.contains(name), "--grid must be small, readme, resnet18 or rules, got {}", name);
           });
  describeGrid(line, o.lists);
  describeTraining(line, o);
  o.data.describe(line);
  describeOutput(line, o, targetPercent);
  o.watch.describe(line, /*withPage=*/false);
  if (!line.read(argc, argv)) return std::nullopt;
  takeGrid(grid, line, o);
  o.target = targetPercent / 100;
  joinModes(o, line);
  checkCombinations(o, line);
  return o;
}

Recipe recipeOf(const Options& o, const example::DataSets& data, std::int64_t testEvery) {
  const auto list = [](const auto& values) { return fmt::format("{}", fmt::join(values, ",")); };
  const auto text = [](const auto& value) { return fmt::format("{}", value); };
  Recipe recipe{{"model", o.model},
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
  // Write these only if they differ from the default: older results files do not have them.
  if (!o.lists.strategies.empty()) recipe.emplace_back("strategy", list(o.lists.strategies));
  if (o.learningRateSchedule != "constant") recipe.emplace_back("lr-schedule", o.learningRateSchedule);
  return recipe;
}

}  // namespace convergence
