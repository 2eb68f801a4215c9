#include "examples/compare_convergence/run_record.h"

#include "muster/core/io/json_fields.h"

namespace convergence {
namespace {

/// The fields beside the arm and the points.
void visit(muster::Fields& f, RunRecord& run) {
  f.field("seed", run.seed);
  f.field("computeSeconds", run.computeSeconds);
  f.field("cores", run.cores);
  f.field("recomputedAccuracy", run.recomputedAccuracy);
  f.field("failure", run.failure);
}

}  // namespace

void Point::fields(muster::Fields& f) {
  f.field("samples", samples);
  f.field("iterations", iterations);
  f.field("rounds", rounds);
  f.field("seconds", seconds);
  f.field("bytes", bytes);
  f.field("trainingLoss", trainingLoss);
  f.field("testLoss", testLoss);
  f.field("testAccuracy", testAccuracy);
  f.field("distance", distance);
  f.field("resynchronisations", resynchronisations);
  f.field("resynchronisationBytes", resynchronisationBytes);
}

std::string toJson(const RunRecord& run) {
  RunRecord copy = run;
  muster::JsonWriter json;
  copy.arm.fields(json);
  visit(json, copy);
  json.list("points", copy.points.size(),
            [&](std::size_t i, muster::JsonWriter& inside) { copy.points[i].fields(inside); });
  return json.line();
}

RunRecord runFromJson(std::string_view text) {
  RunRecord run;
  muster::JsonReader json(text);
  for (const char* field : {"mode", "workers", "seed", "points"}) json.requireField(field);
  run.arm.fields(json);
  visit(json, run);
  json.list("points", [&](muster::JsonReader& inside) { run.points.emplace_back().fields(inside); });
  json.finish();
  return run;
}

}  // namespace convergence
