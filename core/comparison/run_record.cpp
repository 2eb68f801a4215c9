#include "muster/core/comparison/run_record.h"

#include "muster/core/io/json_fields.h"

namespace muster {
namespace {

/// The plain fields.
void visit(Fields& f, RunRecord& run) {
  f.field("arm", run.arm);
  f.field("seed", run.seed);
  f.field("on", run.on);
  f.field("workers", run.workers);
  f.field("summed", run.summed);
  f.field("computeSeconds", run.computeSeconds);
  f.field("cores", run.cores);
  f.field("threads", run.threads);
  f.field("othersBusy", run.othersBusy);
  f.field("loaded", run.loaded);
  if (run.judged) f.field("guess", run.guess);
  f.field("failure", run.failure);
}

}  // namespace

void RunPoint::fields(Fields& f) {
  f.field("samples", samples);
  f.field("iterations", iterations);
  f.field("rounds", rounds);
  f.field("seconds", seconds);
  f.field("bytes", bytes);
  f.field("trainingLoss", trainingLoss);
  f.field("loss", loss);
  f.field("score", score);
  f.field("distance", distance);
  f.field("resynchronisations", resynchronisations);
  f.field("resynchronisationBytes", resynchronisationBytes);
}

std::string toJson(const RunRecord& run) {
  RunRecord copy = run;
  JsonWriter json;
  visit(json, copy);
  json.put("values", std::span<const std::string>(copy.settings));
  json.numbers("recomputed", copy.recomputed);
  json.list("points", copy.points.size(),
            [&](std::size_t i, JsonWriter& inside) { copy.points[i].fields(inside); });
  return json.line();
}

RunRecord runFromJson(std::string_view text) {
  RunRecord run;
  JsonReader json(text);
  for (const char* field : {"arm", "values", "seed", "on", "points"}) json.requireField(field);
  visit(json, run);
  run.judged = json.json("guess").has_value();
  json.strings("values", run.settings);
  json.numbers("recomputed", run.recomputed);
  json.list("points", [&](JsonReader& inside) { run.points.emplace_back().fields(inside); });
  json.finish();
  return run;
}

}  // namespace muster
