#include "examples/muster/run_options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "muster/core/base/comma_list.h"
#include "muster/core/base/error.h"
#include "muster/core/io/json_value.h"
#include "muster/parallel/run/detail/field_list.h"
#include "muster/parallel/run/detail/override_error.h"
#include "muster/parallel/run/detail/run_overrides.h"
#include "muster/parallel/strategies/named_strategy.h"

namespace program {
namespace {

using namespace muster;

/// An option that sets fields of a run file.
struct RunOption {
  const char* option;               // without dashes
  const char* value;                // in the help; "": a flag, which sets true
  std::vector<const char*> fields;  // each is set to the value
  const char* help;                 // "": the description of the first field
  bool text = false;                // the value is a text, even if it looks like JSON
};

/// A title in the help and its options.
struct Group {
  const char* title;
  std::vector<RunOption> options;
};

const std::vector<Group>& groups() {
  constexpr const char* kByField = "";
  constexpr bool kText = true;
  static const std::vector<Group> all{
      {"Training",
       {{"workers", "N", {"training.workers"}, kByField},
        {"averaging-frequency", "N", {"training.strategy.every"}, "iterations of each worker between merges"},
        {"strategy",
         "NAME",
         {"training.strategy.name"},
         "the averaging rule, with its defaults: averaging, synchronous, diloco, ...; help: a table of all"},
        {"epochs", "N", {"training.epochs"}, kByField},
        {"batch", "N", {"data.batch"}, kByField},
        {"updater", "NAME", {"network.updater.type"}, "sgd, nesterovs, adam, ..., with its defaults"},
        {"lr", "X", {"network.updater.learningRate"}, "learning rate"},
        {"momentum", "X", {"network.updater.momentum"}, "momentum of nesterovs"},
        {"l2", "X", {"network.l2"}, "L2 regularisation of the weights"},
        {"seed",
         "N",
         {"data.seed", "network.seed"},
         "of the order of the examples and of the initial weights; also draws what is held out, unless "
         "data.splitSeed is set"},
        {"threads-per-worker", "N", {"training.threadsPerWorker"}, kByField},
        {"pin-threads", "BOOL", {"training.pinThreads"}, kByField},
        {"prefetch", "N", {"training.prefetch"}, kByField},
        {"math-mode", "NAME", {"training.mathMode"}, kByField},
        {"device", "LIST", {"training.devices"}, kByField, kText},
        {"placement", "WHERE", {"training.placement"}, kByField}}},
      {"Data",
       {{"data", "TYPE", {"data.type"}, "mnist, fashion, kmnist, cifar10, generated, ..."},
        {"data-dir", "DIR", {"data.directory"}, kByField, kText},
        {"examples",
         "N",
         {"data.trainExamples", "data.testExamples"},
         "only N to train with and N to test with, each class in equal shares"},
        {"train-examples", "N", {"data.trainExamples"}, kByField},
        {"test-examples", "N", {"data.testExamples"}, kByField}}},
      {"Files",
       {{"model", "FILE", {"training.model"}, kByField, kText},
        {"resume",
         "PATH",
         {"training.resume"},
         "continue from a file that muster train saved, or from the newest checkpoint of a directory. If "
         "--checkpoint-dir names the same directory, it may be empty or missing: then the training begins, "
         "so "
         "that one command line starts and restarts it",
         kText},
        {"checkpoint-dir",
         "DIR",
         {"listeners.checkpoints.directory"},
         "save checkpoints there during the training; if it holds some of an earlier one, --resume must name "
         "it",
         kText},
        {"checkpoint-every", "N", {"listeners.checkpoints.everyEpochs"}, kByField},
        {"checkpoint-iterations", "N", {"listeners.checkpoints.everyIterations"}, kByField},
        {"checkpoint-minutes", "X", {"listeners.checkpoints.everyMinutes"}, kByField},
        {"keep", "N", {"listeners.checkpoints.keepLast"}, kByField},
        {"test-every", "N", {"listeners.testEvery"}, kByField},
        {"test-iterations", "N", {"listeners.testIterations"}, kByField},
        {"report", "DIR", {"listeners.report"}, kByField, kText}}},
      {"Watching",
       {{"tensorboard", "DIR", {"listeners.tensorBoard"}, kByField, kText},
        {"page", "", {"listeners.page"}, kByField},
        {"page-port", "N", {"listeners.pagePort"}, kByField},
        {"curves", "FILE", {"listeners.curves"}, kByField, kText},
        {"group", "NAME", {"listeners.group"}, kByField, kText}}}};
  return all;
}

std::string helpOf(const RunOption& row) {
  const std::string_view help = row.help;
  return fmt::format("{} ({})", help.empty() ? detail::fieldAt(row.fields.front()).description : help,
                     fmt::join(row.fields, ", "));
}

/// Options of mnist_convnet that have no row above.
constexpr std::pair<std::string_view, std::string_view> kInstead[] = {
    {"--mode", "--strategy"}, {"--average-updaters", "--strategy-options updaterState=keep"}};

void set(const RunOption& row, const std::string& text, FieldChoices& into) {
  require(!text.empty(), "--{} needs a value, and it is empty, perhaps an unset variable", row.option);
  for (const char* const field : row.fields) {
    into.byOption.push_back(fmt::format("{}={}", field, row.text ? muster::quoteJson(text) : text));
    into.options.push_back(
        fmt::format("--{}{}{}", row.option, *row.value == '\0' ? "" : " ", *row.value == '\0' ? "" : text));
  }
}

/// Sets options of a strategy, as in "rate=0.7,speeds=1,0.5,every=100".
void setStrategyOptions(const std::string& options, FieldChoices& into) {
  if (options.empty()) return;
  auto& sets = into.byOption;
  const auto begin = sets.size();
  for (const auto item : commaList(options))
    if (item.find('=') != item.npos)
      sets.push_back(fmt::format("{}{}", detail::kStrategyPath, item));
    else if (sets.size() > begin)
      sets.back().append(",").append(item);  // of a list
    else
      throw muster::InvalidArgument(
          fmt::format("--strategy-options {}: expected NAME=VALUE, as in rate=0.7,every=100", options));
  into.options.resize(sets.size(), fmt::format("--strategy-options {}", options));
}

/// Whether a text has this path as a whole.
bool names(std::string_view text, std::string_view path) {
  const auto isOfPath = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.'; };
  for (auto at = text.find(path); at != text.npos; at = text.find(path, at + 1))
    if (const auto end = at + path.size();
        (at == 0 || !isOfPath(text[at - 1])) && (end == text.size() || !isOfPath(text[end])))
      return true;
  return false;
}

/// Options that set a field which an error names, and which the command line does not set.
std::string missingOptions(std::string_view error, const FieldChoices& choices) {
  if (choices.byOption.empty()) return {};
  const auto sets = choices.all();
  std::string text;
  for (const auto& group : groups())
    for (const auto& row : group.options) {
      const std::string_view field = row.fields.front();
      const auto given = [&](const std::string& set) { return detail::keyOf(set) == field; };
      if (row.fields.size() == 1 && std::ranges::none_of(sets, given) && names(error, field))
        text += fmt::format("; --{} sets {}", row.option, field);
    }
  return text;
}

/// Where the path of a field, or another word, ends that begins here; `begin` if none does.
std::size_t endOfPath(std::string_view text, std::size_t begin) {
  const auto isOfPath = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("._[]-").find(c) != std::string_view::npos;
  };
  while (begin < text.size() && isOfPath(text[begin])) ++begin;
  return begin;
}

bool isField(std::string_view path) {
  constexpr std::string_view kParts[] = {"data.", "network.", "training.", "listeners."};
  return std::ranges::any_of(kParts, [&](std::string_view part) { return path.starts_with(part); });
}

/// The option for a field, with a space after it; "" if it has none.
std::string optionOf(std::string_view field) {
  for (const auto& group : groups())
    for (const auto& row : group.options)
      if (row.fields.size() == 1 && row.fields.front() == field && *row.value != '\0')
        return fmt::format("--{} ", row.option);
  return {};
}

/// An option's name as fields are spelt: `learningRate` of `learning-rate`.
std::string asField(std::string_view option) {
  std::string name;
  for (const char c : option)
    if (name.ends_with('-'))
      name.back() = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    else
      name += c;
  return name;
}

/// An option without its dashes.
std::string_view nameOf(std::string_view option) {
  return option.substr(std::min(option.find_first_not_of('-'), option.size()));
}

/// Whether a command uses a field.
bool isUsed(std::string_view path, FieldUse use) {
  if (use == FieldUse::Training || path.starts_with("data.") || path.starts_with("network.")) return true;
  constexpr std::string_view kNotInArms[] = {"training.model", "training.resume", "training.nodes"};
  return use == FieldUse::Comparing &&
         (path.starts_with("training.") ? std::ranges::find(kNotInArms, path) == std::end(kNotInArms)
                                        : path.starts_with("listeners.earlyStopping.") ||
                                              path.starts_with("listeners.reduceOnPlateau."));
}

/// What sets each of the fields to a value; "" if the command does not use one of them.
std::string settingOf(const auto& fields, std::string_view value, FieldUse use) {
  std::string text;
  for (const std::string_view field : fields) {
    if (!isUsed(field, use)) return {};
    text += fmt::format("{}--set {}={}", text.empty() ? "" : " ", field, value);
  }
  return text;
}

/// The option for a variable of the environment; "" for another word.
std::string variableOption(std::string_view word) {
  constexpr std::pair<std::string_view, std::string_view> kVariables[] = {
      {"MUSTER_STORE", "--store"},
      {"MUSTER_NODE", "--node"},
      {"MUSTER_NODES", "--nodes"},
      {"MUSTER_INTERFACE", "--interface"}};
  const auto* const found =
      std::ranges::find(kVariables, word, &std::pair<std::string_view, std::string_view>::first);
  return found == std::end(kVariables) ? "" : std::string(found->second);
}

/// Whether a word after this text is what a user has given: the value of an option, or a part of a quotation.
bool givenAfter(std::string_view text) {
  if (std::ranges::count(text, '"') % 2 != 0) return true;
  if (!text.ends_with(' ')) return false;
  text.remove_suffix(1);
  return text.substr(text.find_last_of(' ') + 1).starts_with("--");
}

/// A message of the library in terms of --set, and of the other options as far as there are some.
std::string worded(std::string_view message, bool options) {
  std::string text;
  for (std::size_t at = 0; at < message.size();) {
    const auto end = endOfPath(message, at);
    const auto path = message.substr(at, end - at);
    const bool isSet = end < message.size() && message[end] == '=' && isField(path) && !givenAfter(text);
    const auto option = !options ? "" : isSet ? optionOf(path) : variableOption(path);
    if (!option.empty()) {
      text += option;
      at = end + (isSet ? 1 : 0);
    } else {
      text += isSet ? "--set " : "";
      text += path;
      at = end;
    }
    while (at < message.size() && endOfPath(message, at) == at) text += message[at++];
  }
  return text;
}

}  // namespace

muster::RunFile readRun(const std::string& path, const FieldChoices& choices) try {
  return RunFile::read(path, choices.all());
} catch (const muster::detail::OverrideError& error) {
  throw muster::InvalidArgument(choices.problemOf(error.index(), error.what()) +
                                missingOptions(error.what(), choices));
} catch (const muster::InvalidArgument& error) {
  throw muster::InvalidArgument(error.what() + missingOptions(error.what(), choices));
}

muster::RunFile readRun(const std::string& path, const std::vector<std::string>& sets) {
  return readRun(path, FieldChoices{.byOption = {}, .options = {}, .sets = sets});
}

std::string FieldChoices::problemOf(std::size_t set, std::string_view problem) const {
  if (set < options.size()) return fmt::format("{}: {}", options[set], problem);
  const auto& text = sets[set - options.size()];
  return problem.starts_with(text) ? fmt::format("--set {}", problem)
                                   : fmt::format("--set {}: {}", text, problem);
}

std::vector<std::string> FieldChoices::all() const {
  auto joined = byOption;
  joined.insert(joined.end(), sets.begin(), sets.end());
  return joined;
}

void describeSets(CommandLine& line, std::vector<std::string>& sets) {
  line.list(
      "set", sets, "KEY=VALUE",
      "a field in place of the file's, as in training.workers=4, network.updater.momentum=0.8 or "
      "network.layers[0].outChannels=8; options of a strategy have the names of --strategy-options: "
      "training.strategy.rate=0.7; a list has commas: data.columns=size,colour; null takes a field out of "
      "the file: listeners.checkpoints=null. May be given several times; the last one for a field wins");
}

void describeFields(CommandLine& line, FieldChoices& choices) {
  for (const auto& group : groups()) {
    line.group(group.title);
    for (const auto& row : group.options) {
      const auto take = [&row, &choices](const std::string& text) { set(row, text, choices); };
      if (*row.value == '\0') {
        line.flag(
            row.option, [take] { take("true"); }, helpOf(row).c_str());
        continue;
      }
      line.addParsed(row.option, "", row.value, helpOf(row), take);
      if (row.option == std::string_view("strategy"))
        line.addParsed("strategy-options", "", "LIST",
                       "of the strategy, as in rate=0.7,momentum=0.9,every=100",
                       [&choices](const std::string& text) { setStrategyOptions(text, choices); });
    }
  }
  line.topic("strategy", [] { return muster::describeStrategies(2); });
  line.group("Others");
  describeSets(line, choices.sets);
}

std::string asOptions(const std::string& message) {
  return worded(message, true);
}

std::string asSets(const std::string& message) {
  return worded(message, false);
}

std::string withOptions(std::string text,
                        std::span<const std::pair<std::string_view, std::string_view>> fields) {
  for (const auto& [field, option] : fields)
    for (auto at = text.find(field); at != text.npos; at = text.find(field, at + option.size()))
      text.replace(at, field.size(), option);
  return text;
}

std::string setsOf(std::string_view option, FieldUse use) {
  for (const auto& group : groups())
    for (const auto& row : group.options)
      if (row.option == nameOf(option))
        return settingOf(row.fields, *row.value == '\0' ? "true" : row.value, use);
  return {};
}

std::string insteadOf(std::string_view option, FieldUse use) {
  const bool trains = use == FieldUse::Training;
  const auto* const former =
      std::ranges::find(kInstead, option, &std::pair<std::string_view, std::string_view>::first);
  if (trains && former != std::end(kInstead)) return std::string(former->second);
  if (auto sets = setsOf(option, use); !sets.empty()) return sets;
  const auto path = detail::fieldNamed(asField(nameOf(option)));
  if (path.empty()) return {};
  auto known = trains ? optionOf(path) : "";
  if (known.empty()) return settingOf(std::array{path}, "VALUE", use);
  known.pop_back();  // the space
  return known;
}

}  // namespace program
