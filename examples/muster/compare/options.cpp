#include "examples/muster/compare/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <utility>

#include "examples/muster/command_line.h"
#include "examples/muster/options.h"
#include "muster/core/base/comma_list.h"
#include "muster/core/base/error.h"
#include "muster/core/io/json_fields.h"
#include "muster/core/io/json_value.h"
#include "muster/parallel/run/detail/comparison_fields.h"

namespace comparing {
namespace {

using muster::InvalidArgument;
using muster::require;

constexpr std::int64_t kMost = std::int64_t{1} << 40;

constexpr std::string_view kIntroduction =
    R"(Compares ways to train the network of a run file on its data: each is trained with several seeds, and tested.

  muster compare run.json --arm averaging --arm 'diloco every=50'
  muster compare run.json --arm 'averaging every={1,10,100}' --arm synchronous --seeds 1,2,3,4,5
  muster compare run.json --arm 'small: batch=16' --arm 'large: batch=128' --tune learningRate=0.01,0.03,0.1
  muster compare run.json --seeds 4,5              two more seeds for a finished comparison
  muster compare run.json --arm gossip             one more arm

An arm is a strategy by its name and FIELD=VALUE, with spaces between them: its options (muster strategies) and
fields of the run file, by their path or by its last part. {A,B} stands for an arm with each value; a name and a
colon may come first. The arm "joined" is one worker on the batches of all workers joined.

In the directory --out: results.jsonl (every finished run; examples/read_results.py reads it), report.html, plots
and tables as SVG and CSV, table.md, and curves for muster page. Ctrl-C stops it, and the same command continues.
)";

/// The spellings of an earlier program, which had its own networks and data.
constexpr std::string_view kFormer[] = {
    "grid",        "mode",     "strategy",       "workers",       "frequency", "updater", "lr-scaling",
    "post-local",  "width",    "momentum",       "batch",         "epochs",    "data",    "l2",
    "lr-schedule", "examples", "train-examples", "test-examples", "model"};

std::vector<std::int64_t> parseSeeds(const std::string& text) {
  std::vector<std::int64_t> seeds;
  for (const auto word : muster::commaList(text)) {
    std::int64_t seed = 0;
    const auto* const end = word.data() + word.size();
    const auto read = std::from_chars(word.data(), end, seed);
    require(read.ec == std::errc() && read.ptr == end, "--seeds {}: expected whole numbers, as in 1,2,3",
            text);
    seeds.push_back(seed);
  }
  return seeds;
}

/// @param by  what gave them, as in "--seeds".
void checkSeeds(const std::vector<std::int64_t>& seeds, std::string_view by) {
  for (auto seed = seeds.begin(); seed != seeds.end(); ++seed) {
    require(*seed >= 1 && *seed <= kMost, "{}: each must be between 1 and {}, got {}", by, kMost, *seed);
    require(std::find(seeds.begin(), seed, *seed) == seed, "{}: {} is given twice", by, *seed);
  }
}

/// The link of --link.
muster::NetworkLink linkOf(const std::string& text) try {
  return muster::parseNetworkLink(text);
} catch (const InvalidArgument& error) {
  throw InvalidArgument(fmt::format("--{}", error.what()));
}

void checkTarget(double target, std::string_view by) {
  require(target < 100, "{} must be below 100: an accuracy in percent, or R2; got {}", by, target);
}

/// What `compare` of a run file, which is valid, asks for.
Options optionsIn(const std::string& section) {
  muster::JsonReader json(section);
  muster::detail::RunComparison asked;
  muster::detail::visitComparison(json, asked);
  json.finish();
  Options o;
  o.arms = std::move(asked.arms);
  o.tune = std::move(asked.tune);
  o.testEvery = asked.testEvery;
  o.baseline = std::move(asked.baseline);
  o.seeds.assign(asked.seeds.begin(), asked.seeds.end());
  if (asked.target != 0) o.target = asked.target;
  if (!asked.link.empty()) o.link = muster::parseNetworkLink(asked.link);
  return o;
}

/// @throws InvalidArgument that says what replaces an option of the earlier program.
void refuseFormer(const program::Call& call) {
  for (const auto& option : call.options)
    for (const auto name : kFormer)
      if (const auto flag = fmt::format("--{}", name); option == flag || option.starts_with(flag + "=")) {
        const auto all = program::setsOf(flag, program::FieldUse::Comparing);
        throw InvalidArgument(fmt::format(
            "{} is not an option: {}, and --arm what differs, as in --arm 'averaging every={{1,10}} "
            "workers={{2,4}}'; share/muster/compare, below where muster is installed, has run files with "
            "grids",
            flag,
            all.empty() ? "the run file says what is trained" : fmt::format("{} sets it for all arms", all)));
      }
}

}  // namespace

std::optional<Options> readOptions(const program::Call& call) {
  refuseFormer(call);
  Options o;
  program::CommandLine line(kIntroduction);
  line.group("What is compared");
  line.list("arm", o.arms, "ARM", "a way to train, as above; once for each");
  line.addParsed(
      "seeds", "", "LIST",
      "seeds of the first weights and of the order of the examples, the same for all arms (default: "
      "1,2,3)",
      [&](const std::string& text) { o.seeds = parseSeeds(text); });
  line.list(
      "tune", o.tune, "FIELD=LIST",
      "choose a field for each arm by the loss on validation data, as in learningRate=0.01,0.03,0.1; of "
      "several, all combinations are tried");
  program::describeSets(line, o.sets);
  line.group("Results");
  line.add("out", o.out, "DIR",
           "directory of the results; an interrupted or finished comparison continues there");
  line.add("baseline", o.baseline, "NAME", "the arm that the others are compared with (default: the first)");
  line.addParsed("test-every", "", "N", "samples between tests (default: a twentieth of the training)",
                 [&](const std::string& text) {
                   const auto [end, error] =
                       std::from_chars(text.data(), text.data() + text.size(), o.testEvery);
                   require(error == std::errc() && end == text.data() + text.size() && o.testEvery >= 1,
                           "--test-every must be a whole number and at least 1, got {}", text);
                 });
  line.add(
      "target", o.target, "NUMBER",
      "accuracy in percent, as in 97, or R2, whose time and samples are compared (default: the highest that "
      "more than half of the arms reach with every seed)");
  line.addParsed(
      "link", "", "BANDWIDTH,LATENCY",
      "as in 10Gbit,50us: also estimate each arm's time with 2 to 1024 workers that such links connect",
      [&](const std::string& text) { o.link = linkOf(text); });
  if (!program::readOptions(line, call)) return std::nullopt;
  checkSeeds(o.seeds, "--seeds");
  if (o.target) checkTarget(*o.target, "--target");
  return o;
}

void takeDefaults(const std::string& file, const std::string& text, Options& o) try {
  const auto value = muster::parseJson(text);
  const auto* const section = value.is_object() ? value.get_object().if_contains("compare") : nullptr;
  if (section == nullptr) return;
  const Options none, given = optionsIn(muster::printJson(*section));
  const auto take = [&](auto field) {
    const bool open = o.*field == none.*field;
    if (open) o.*field = given.*field;
    return open;
  };
  const auto takeNamed = [&](auto field, std::string& by, std::string_view name) {
    if (take(field)) by = fmt::format("{}: compare.{}", file, name);
  };
  takeNamed(&Options::arms, o.armsBy, "arms");
  takeNamed(&Options::tune, o.tuneBy, "tune");
  takeNamed(&Options::baseline, o.baselineBy, "baseline");
  takeNamed(&Options::target, o.targetBy, "target");
  take(&Options::seeds);
  take(&Options::testEvery);
  if (!o.link) o.link = given.link;
} catch (const InvalidArgument& error) {
  throw InvalidArgument(fmt::format("{}: compare.{}", file, error.what()));
}

}  // namespace comparing
