// The results.jsonl of compare_convergence: a run that is read is written back identically.
#include "examples/compare_convergence/results_file.h"

#include <fmt/format.h>

#include "tests/fuzz/input_file.h"
#include "tests/fuzz/json_mutation.h"

namespace muster::fuzz {
namespace {

constexpr std::string_view kHeader =
    R"({"program":"compare_convergence","format":1,"recipe":[{"option":"workers","value":"2"}]})";

void run(ByteSpan bytes) {
  static FuzzedFile file;
  const auto& path = file.of(bytes);
  isRead(path, [&] {
    const convergence::ResultsFile results(path, {{"workers", "2"}});
    for (const auto& run : results.runs()) {
      const auto text = toJson(run);
      expect(toJson(convergence::runFromJson(text)) == text,
             "a run that was read and written is another one");
      expect(results.find(run.arm, run.seed) == &run, "a run stands twice");
    }
  });
}

std::vector<Bytes> seeds() {
  using namespace convergence;
  const RunRecord first{.arm = {.mode = Mode::Averaging, .workers = 2, .frequency = 10},
                        .seed = 1,
                        .points = {{.samples = 100, .seconds = 0.125, .testAccuracy = 0.5}, {.samples = 200}},
                        .cores = 2};
  const RunRecord second{.arm = {.mode = Mode::Strategy, .workers = 2, .strategy = "diloco:rate=0.5"},
                         .seed = 2,
                         .points = {},
                         .failure = "the score became nan"};
  return {bytesOf(fmt::format("{}\n", kHeader)),
          bytesOf(fmt::format("{}\n{}\n{}\n", kHeader, toJson(first), toJson(second)))};
}

void mutate(Bytes& bytes, Draw& draw) {
  bytes = bytesOf(mutateJsonLines(textOf(bytes), draw));
}

}  // namespace

const Target targets::results{"results", &run, &seeds, &mutate};

}  // namespace muster::fuzz
