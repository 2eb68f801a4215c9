#include "examples/compare_convergence/page_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "examples/compare_convergence/names.h"
#include "examples/compare_convergence/output_files.h"
#include "examples/compare_convergence/tables.h"
#include "examples/support/pages.h"
#include "muster/core/base/plural.h"
#include "muster/core/io/json_fields.h"

namespace convergence {
namespace {

using muster::JsonWriter;
using Texts = std::vector<std::string>;

void put(JsonWriter& json, std::string_view name, const Texts& texts) {
  json.put(name, std::span<const std::string>(texts));
}

struct Table {
  std::string title;
  example::Cells rows;
  Texts notes;
};

std::vector<Table> tablesOf(const Comparison& comparison) {
  std::vector<Table> tables{
      {"", summaryCells(comparison, Detail::Full), summaryNotes(comparison, Detail::Full)}};
  for (const auto& panel : comparison.grid.panels)
    if (auto cells = strategyCells(panel, comparison); !cells.empty())
      tables.push_back({"Strategies", std::move(cells), {}});
  if (!comparison.link) return tables;
  Texts notes{
      "What each arm would take where its workers are joined by that link: seconds, and the share of them "
      "spent computing. A calculation, not a measurement."};
  for (auto& note : linkAssumptions()) notes.push_back(std::move(note));
  tables.push_back({"Projected on a link of " + describe(*comparison.link),
                    linkCells(comparison, Detail::Full), std::move(notes)});
  return tables;
}

Texts paragraphsOf(const Comparison& comparison) {
  Texts all;
  for (const auto& sentence :
       {comparison.data, comparison.origin, comparison.training, comparison.testing, comparison.made})
    if (!sentence.empty()) all.push_back(sentence);
  return all;
}

Texts warningsOf(const Comparison& comparison) {
  Texts all;
  if (!comparison.complete())
    all.push_back(fmt::format("Not finished: {} of {} so far.", comparison.runs.size(),
                              muster::plural(comparison.grid.runs(), "run")));
  if (std::ranges::any_of(comparison.arms, [](const auto& arm) { return arm.oversubscribed; }))
    all.push_back(
        "More workers than cores: seconds do not show what workers on cores of their own would take.");
  return all;
}

const Texts kNotes{
    "Lines are means over the seeds, bands one standard deviation up and down; runs that failed are in none.",
    "Accuracy and test loss are of the merged model. The score is the training loss of the replicas on the "
    "batches they learnt from, before they were merged, so it flatters arms that merge seldom.",
    "The dotted line is the target.",
    "Triangles are resynchronisations of shared gradients: between them part of each update is withheld, and "
    "there it comes into the model, so accuracy and loss jump.",
    "One worker sends nothing and has no distance: it is not in those figures, nor are replicas that are "
    "equal.",
    "Bytes are the payload that one worker contributed to the merges, without what a network adds."};

/// Adds each arm's projected samples per second, by number of workers, to the arm's first run.
void addProjection(std::vector<example::PageCurves>& runs, const Comparison& comparison) {
  if (!comparison.link) return;
  for (const auto& arm : comparison.arms) {
    if (arm.arm.mode == Mode::Single || arm.samples == 0) continue;
    const auto first = std::ranges::find_if(
        runs, [&](const auto& run) { return run.group == arm.name && run.failed.empty(); });
    if (first == runs.end()) continue;
    for (const auto workers : projectedWorkers(comparison.grid)) {
      const auto at = project(*comparison.link, arm.arm.mode, arm.cost, workers);
      first->series["projection/samples per second"].emplace_back(workers, samplesPerSecond(arm, at));
    }
  }
}

}  // namespace

std::string documentOf(const Comparison& comparison) {
  JsonWriter all;
  all.group("document", [&](JsonWriter& json) {
    json.put("title", "Model averaging against synchronous training");
    put(json, "paragraphs", paragraphsOf(comparison));
    put(json, "warnings", warningsOf(comparison));
    json.put("target", comparison.target);
    const auto tables = tablesOf(comparison);
    json.list("tables", tables.size(), [&](std::size_t i, JsonWriter& table) {
      table.put("title", std::string_view(tables[i].title));
      const auto& rows = tables[i].rows;
      table.list("rows", rows.size(), [&](std::size_t r, JsonWriter& row) { put(row, "cells", rows[r]); });
      put(table, "notes", tables[i].notes);
    });
    const auto& panels = comparison.grid.panels;
    json.list("panels", panels.size(), [&](std::size_t i, JsonWriter& panel) {
      panel.put("name", std::string_view(panelName(panels[i])));
      Texts groups;
      for (const auto index : panels[i].arms)
        groups.push_back(armName(comparison.grid.arms[index], comparison.grid));
      put(panel, "groups", groups);
    });
    put(json, "notes", kNotes);
    put(json, "options", comparison.recipe);
  });
  return all.line();
}

std::string pageReport(const Comparison& comparison) {
  std::vector<example::PageCurves> runs;
  for (const auto& run : comparison.runs) runs.push_back(curvesOf(run, comparison.grid));
  addProjection(runs, comparison);
  return example::stillPage(runs, documentOf(comparison));
}

}  // namespace convergence
