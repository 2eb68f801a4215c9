// The results.jsonl of muster compare: a run that is read is written back identically.
#include "muster/core/comparison/results_file.h"

#include <fmt/format.h>

#include "tests/fuzz/input_file.h"
#include "tests/fuzz/json_changes.h"

namespace muster::fuzz {
namespace {

constexpr std::string_view kHeader =
    R"({"program":"muster compare","format":1,"metric":"accuracy","trainExamples":90,"testExamples":10,)"
    R"("testEvery":9,"seeds":[1,2],"tune":["learningRate=0.1,0.2"],)"
    R"("arms":[{"name":"a","sets":["training.workers=2"]}],"settings":["training.epochs=2"]})";

void run(ByteSpan bytes) {
  static FuzzedFile file;
  const auto& path = file.of(bytes);
  isRead(path, [&] {
    const ResultsFile results(path);
    for (const auto& run : results.runs()) {
      const auto text = toJson(run);
      expect(toJson(runFromJson(text)) == text, "a run that was read and written is another one");
      expect(results.find(run.settings, run.seed) == &run, "a run stands twice");
    }
  });
}

std::vector<Bytes> seeds() {
  const RunRecord first{.arm = "a",
                        .settings = {"training.workers=2"},
                        .seed = 1,
                        .points = {{.samples = 100, .seconds = 0.125, .score = 0.5}, {.samples = 200}},
                        .cores = 2,
                        .recomputed = {0.5}};
  const RunRecord second{
      .arm = "diloco", .settings = {}, .seed = 0, .on = "validation", .failure = "the score became nan"};
  return {bytesOf(fmt::format("{}\n", kHeader)),
          bytesOf(fmt::format("{}\n{}\n{}\n", kHeader, toJson(first), toJson(second)))};
}

void mutate(Bytes& bytes, Draw& draw) {
  bytes = bytesOf(mutateJsonLines(textOf(bytes), draw));
}

}  // namespace

const Target targets::results{"results", &run, &seeds, &mutate};

}  // namespace muster::fuzz
