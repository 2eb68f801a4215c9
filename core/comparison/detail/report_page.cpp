#include "muster/core/comparison/detail/report_page.h"

#include <fmt/format.h>

#include "muster/core/base/plural.h"
#include "muster/core/comparison/detail/figure.h"
#include "muster/core/comparison/detail/tables.h"

namespace muster::detail {
namespace {

// The title is that of all our pages, by which programs know a file that they may replace.
constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>muster</title>
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.45 sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.2rem 0.7rem; text-align: right; border-bottom: 1px solid #8884; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.wide { overflow-x: auto; }
.note { color: #777; font-size: 0.9em; margin: 0.3rem 0; }
.conclusion { font-size: 1.1em; font-weight: bold; }
figure { margin: 2rem 0; background: #fff; color: #222; padding: 0.5rem; }
svg { max-width: 100%; height: auto; }
</style>
</head>
<body>
)";

std::string paragraph(std::string_view text, std::string_view kind = "") {
  return kind.empty() ? fmt::format("<p>{}</p>\n", escaped(text))
                      : fmt::format("<p class=\"{}\">{}</p>\n", kind, escaped(text));
}

std::string tableHtml(const ReportTable& table) {
  std::string html = table.title.empty() ? "" : fmt::format("<h2>{}</h2>\n", escaped(table.title));
  html += "<div class=\"wide\"><table>\n";
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    html += "<tr>";
    for (const auto& cell : table.rows[r])
      html += fmt::format("<{0}>{1}</{0}>", r == 0 ? "th" : "td", escaped(cell));
    html += "</tr>\n";
  }
  html += "</table></div>\n";
  for (const auto& note : table.notes) html += paragraph(note, "note");
  return html + fmt::format("<p class=\"note\"><a href=\"tables/{0}.csv\">{0}.csv</a></p>\n", table.name);
}

std::string figure(const Plot& plot) {
  return fmt::format(
      "<figure>\n<figcaption>{1} (<a href=\"plots/{0}.svg\">SVG</a>, <a href=\"plots/{0}.csv\">CSV</a>)"
      "</figcaption>\n{2}</figure>\n",
      plot.name, escaped(plot.title), plot.svg);
}

}  // namespace

std::vector<ReportTable> tablesOf(const Comparison& c, const ComparisonSummary& s) {
  std::vector<ReportTable> tables{
      {"arms", "", summaryCells(c, s, Detail::Full), summaryNotes(c, s, Detail::Full)}};
  if (auto cells = tuningCells(c); !cells.empty())
    tables.push_back({"tuning", "Tuning", std::move(cells), {c.tuningNote()}});
  else
    tables.front().notes.push_back(c.tuningNote());
  if (!c.link) return tables;
  std::vector<std::string> notes{
      "What each arm would take where its workers are joined by that link: seconds, and the share of them "
      "spent computing. A calculation, not a measurement."};
  for (auto& note : linkAssumptions()) notes.push_back(std::move(note));
  tables.push_back({"link", "Projected on a link of " + linkText(*c.link), linkCells(c, s, Detail::Full),
                    std::move(notes)});
  return tables;
}

std::string reportPage(const Comparison& c, const ComparisonSummary& s,
                       const std::vector<ReportTable>& tables, const std::vector<Plot>& plots) {
  std::string html(kHead);
  html += fmt::format("<h1>{}{}{}</h1>\n", escaped(c.title), c.title.empty() ? "" : ": ",
                      plural(c.grid.arms.size(), "arm"));
  if (c.finished() < c.planned())
    html += paragraph(fmt::format("Not finished: {} of {} so far.", c.finished(), plural(c.planned(), "run")),
                      "conclusion");
  html += paragraph(s.conclusion, "conclusion");
  for (const auto& text : c.paragraphs) html += paragraph(text);
  for (const auto& table : tables) html += tableHtml(table);
  for (const auto& plot : plots) html += figure(plot);
  html += paragraph(
      "Lines are means over the seeds, bands one standard deviation up and down; runs that failed are in "
      "none. The dotted line is the target. Arms of figures by time have the marks * and ! of the table. The "
      "loss of the replicas flatters arms that merge seldom.",
      "note");
  html += "<h2>Arms</h2>\n<ul>\n";
  for (const auto& arm : c.grid.arms) {
    html += fmt::format("<li>{}{}", escaped(arm.name), arm.settings.empty() ? "" : ":");
    for (const auto& setting : arm.settings) html += fmt::format(" <code>{}</code>", escaped(setting));
    html += "</li>\n";
  }
  html += "</ul>\n";
  if (!c.made.empty()) html += paragraph(c.made, "note");
  return html + "</body>\n</html>\n";
}

}  // namespace muster::detail
