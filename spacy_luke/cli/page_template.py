"""The HTML of ``spacy luke page``: one Jinja template, with its style, and no script."""

TEMPLATE = """\
{% macro tag_text(tag) %}
{{ tag.label }}{% if tag.score is not none %} <b>{{ "%.2f" % tag.score }}</b>{% endif %}
{%- endmacro %}
{% macro scores(counts) %}
<span><i>P</i> {{ counts.p | percent }}</span>
<span><i>R</i> {{ counts.r | percent }}</span>
<span><i>F</i> {{ counts.f | percent }}</span>
{% endmacro %}
{% macro place(answer) -%}
{% if answer.place %}<a href="#{{ answer.id }}" dir="auto">{{ answer.text }}</a>{% else -%}
<span dir="auto">{{ answer.text }}</span>{% endif %}
{%- endmacro %}
{% set words = {
  "agreed": "agreement", "spurious": "spurious", "missed": "missed"} %}
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ page.title }}</title>
<style>
:root { --ink: #1f2430; --soft: #667085; --line: #dfe3ea; --paper: #fff; --ground: #f5f6f8;
  --good: #2f6f4f; --bad: #c2410c; --answer: #4338ca; --on: #fff; --missed: #475467;
  --spot: #e8590c; --axis: #98a2b3; --fill: 75% 86%; --edge: 50% 40%; --name: 55% 28%;
  color-scheme: light dark; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e4e7ec; --soft: #a0a9b8; --line: #343b47; --paper: #1b1f27; --ground: #12151b;
    --good: #6fbf94; --bad: #fb8a5c; --answer: #a9adff; --on: #12151b; --missed: #b4bcc9;
    --axis: #667085; --fill: 45% 27%; --edge: 45% 58%; --name: 60% 78%; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.05rem; margin: 0 0 .75rem; }
h3 { font-size: 1.15rem; margin: 0; }
.lead { color: var(--soft); margin: 0 0 1.5rem; }
.card { background: var(--paper); border: 1px solid var(--line); border-radius: .6rem;
  padding: 1.25rem 1.4rem; margin: 0 0 1.25rem; }
.two { display: grid; grid-template-columns: 4fr 3fr; gap: 0 1.25rem;
  align-items: start; }
.two > * { min-width: 0; }
@media (max-width: 46rem) { .two { grid-template-columns: 1fr; gap: 0; } }
.big { display: flex; flex-wrap: wrap; gap: 1.25rem 2.25rem; align-items: baseline; }
.big h2 { margin: 0; flex: 0 0 6rem; }
.big div { line-height: 1.15; }
.big b { display: block; font-size: 1.9rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.big span { color: var(--soft); font-size: .85rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums;
  font-size: .92rem; }
th { color: var(--soft); font-weight: 500; text-align: right; padding: .2rem .4rem; }
td { text-align: right; padding: .3rem .4rem; border-top: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
td.name { overflow-wrap: anywhere; min-width: 8rem; }
.long { max-height: 26rem; overflow: auto; scrollbar-gutter: stable; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; margin: 0;
  font-size: .92rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
.swatch { display: inline-block; width: .8em; height: .8em; border-radius: .2em;
  margin-right: .45em; vertical-align: -.05em; background: hsl(var(--hue) var(--fill));
  border: 1px solid hsl(var(--hue) var(--edge)); }
article header { display: flex; flex-wrap: wrap; gap: .2rem 1rem; align-items: baseline;
  justify-content: space-between; margin-bottom: .6rem; }
.scores { color: var(--soft); font-size: .88rem; font-variant-numeric: tabular-nums; }
.scores span { margin-left: .8em; } .scores i { font-style: normal; opacity: .75; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; line-height: 2.15; margin: 0;
  font-family: Charter, Georgia, "DejaVu Serif", serif; font-size: 1.03rem; }
mark { color: inherit; background: none; padding: .14em .1em; border-radius: .2em;
  -webkit-box-decoration-break: clone; box-decoration-break: clone; }
mark.agreed { background: hsl(var(--hue) var(--fill));
  border-bottom: 2px solid hsl(var(--hue) var(--edge)); }
mark.spurious, mark.both { border: 1.5px solid var(--bad);
  background: repeating-linear-gradient(135deg, hsl(var(--hue) var(--fill)) 0 5px,
    var(--paper) 5px 9px); }
mark.missed { border: 1.5px dashed hsl(var(--hue) var(--edge)); }
mark.both { border-bottom: 3px dashed hsl(var(--gold) var(--edge)); }
.tag { font: 600 .66rem/1 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif;
  letter-spacing: .02em; white-space: nowrap; margin: 0 .3em 0 .35em; vertical-align: .1em;
  color: hsl(var(--hue) var(--name)); }
.tag b { font-weight: 400; font-variant-numeric: tabular-nums; }
.tag.spurious::before { content: "\\2717\\00a0"; color: var(--bad); }
.tag.missed::before { content: "missed\\00a0"; color: var(--bad); font-weight: 400; }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1.6rem; margin: 0; line-height: 2.1;
  font-size: .95rem; }
.note { color: var(--soft); font-size: .85rem; margin: .6rem 0 0; }
.type { font: .66rem/1 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif;
  white-space: nowrap; margin-right: .35em; padding: .15em .5em; border-radius: 1em;
  border: 1px solid var(--line); background: var(--ground); vertical-align: .15em; }
.type b { font-weight: 400; color: var(--soft); font-variant-numeric: tabular-nums; }
.type.agreed { border-color: var(--good); }
.type.spurious { border-color: var(--bad); }
.type.missed { border: 1px dashed var(--soft); background: none; }
.type.spurious::before { content: "\\2717\\00a0"; color: var(--bad); }
.type.missed::before { content: "missed\\00a0"; color: var(--bad); }
.relations { overflow-x: auto; margin-top: .9rem; padding-top: .9rem;
  border-top: 1px solid var(--line); }
.relations svg { display: block; flex: none; margin-bottom: .5rem; overflow: visible;
  font: 14px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
.displacy-token { color: var(--soft); }
.mention { font-weight: 600; color: var(--ink); }
.displacy-tag { font-size: .8em; color: var(--soft); }
.displacy-label { stroke: var(--paper); stroke-width: 3px; paint-order: stroke; }
.displacy-arrow.plain { color: var(--soft); }
.displacy-arrow.agreed, .line.agreed b { color: var(--good); }
.displacy-arrow.spurious, .line.spurious b { color: var(--bad); }
.displacy-arrow.missed, .line.missed b { color: var(--missed); }
.displacy-arrow.missed .displacy-arc { stroke-dasharray: 4 3; }
.line { margin: .2rem 0 0; font-size: .88rem; } .line b { font-weight: 400; }
.links { overflow-x: auto; margin-top: .9rem; padding-top: .6rem;
  border-top: 1px solid var(--line); }
.links table { font-size: .82rem; border-collapse: collapse; width: 100%; }
.links td, .links th { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0;
  white-space: normal; }
.links .about { color: var(--soft); display: block; }
.links .candidate { white-space: nowrap; margin-right: .8em; font-variant-numeric: tabular-nums; }
.links .candidate.gold { font-weight: 600; }
.link.agreed { color: var(--good); } .link.spurious, .link.missed { color: var(--bad); }
.legend .line { margin: 0; font-size: inherit; }
.note + .legend, .legend + .legend { margin-top: .6rem; }
.histogram { display: block; width: 100%; height: auto; }
.histogram .right { fill: var(--good); } .histogram .wrong { fill: var(--spot); }
.histogram .axis { stroke: var(--axis); } .histogram .exact { stroke: var(--spot); }
.note .right { color: var(--good); } .note .wrong { color: var(--spot); }
.histogram text { font: 10px system-ui, -apple-system, "DejaVu Sans", sans-serif;
  fill: var(--soft); }
.over-one { text-decoration: overline solid 2px var(--answer); }
.over-more { text-decoration: overline double 2px var(--answer); }
.over-missed { text-decoration: overline dashed 2px var(--answer); }
.n { font: 600 .66rem/1 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif;
  font-variant-numeric: tabular-nums; white-space: nowrap; text-decoration: none;
  padding: .2em .45em; margin: 0 .2em; border-radius: .3em;
  vertical-align: .3em; scroll-margin: 4rem; color: var(--on); background: var(--answer); }
.n, .tag, .type { unicode-bidi: isolate; }
.n.spurious { background: var(--bad); } .n.agreed { background: var(--good); }
.n.missed::before { content: "missed\\00a0"; font-weight: 400; }
.n.spurious::before, .questions .n.missed::before { content: "\\2717\\00a0"; }
.n.missed { color: var(--bad); background: none; box-shadow: inset 0 0 0 1px var(--bad); }
.n.close { color: var(--answer); background: none; padding: .2em 0; }
.n.close::before { content: "\\2309"; }
.questions { list-style: none; margin: .9rem 0 0; padding: .6rem 0 0; font-size: .92rem;
  border-top: 1px solid var(--line); }
.questions li { display: grid; grid-template-columns: minmax(3rem, auto) 1fr; gap: 0 .4rem;
  padding: .3rem 0; scroll-margin: 4rem; border-radius: .3em; }
.questions li > div { min-width: 0; overflow-wrap: anywhere; }
.questions .n { justify-self: start; align-self: start; margin: .25em 0 0; }
.questions .found { color: var(--soft); font-variant-numeric: tabular-nums; }
.found > span { margin-right: 1em; } .found .none { white-space: nowrap; }
.found a { color: var(--answer); }
.found .agreed a, .found .agreed.none { color: var(--good); }
.found .spurious a, .found .missed.none { color: var(--bad); }
.n:target, .questions li:target { outline: 2px solid var(--answer); outline-offset: 2px; }
@media (max-width: 30rem) { main { padding: 1.5rem .7rem 3rem; } .card { padding: 1rem; }
  .big { gap: .5rem 1.1rem; } .big h2 { flex-basis: 100%; } .big b { font-size: 1.3rem; }
  .links .candidate { white-space: normal; }
  table { font-size: .82rem; } th, td { padding-left: .2rem; padding-right: .2rem; }
  td.name { min-width: 5.5rem; } }
@media print { body { background: #fff; } .card { break-inside: avoid; }
  .long { max-height: none; overflow: visible; } }
</style>
</head>
<body>
<main>
<h1>{{ page.title }}</h1>
<p class="lead">
{% if page.compared %}
Predicted and annotated {{ page.compared | join(", ") }} of
{% else %}
Predictions for
{% endif %}
{% if page.documents | length < page.n_docs %}
{{ page.n_docs }} documents; the first {{ page.documents | length }} are shown, all are counted.
{% else %}
{{ page.n_docs }} document{{ "" if page.n_docs == 1 else "s" }}.
{% endif %}
{% if page.entities == "given" %}
The entities are given, not predicted.
{% endif %}</p>

{% for tally in page.tallies %}
<section class="card big" aria-label="Scores of all documents: {{ tally.what }}">
{% set total = tally.total %}
<h2>{{ tally.what | capitalize }}</h2>
<div><b>{{ total.f | percent }}</b><span>F</span></div>
<div><b>{{ total.p | percent }}</b><span>precision</span></div>
<div><b>{{ total.r | percent }}</b><span>recall</span></div>
<div><b>{{ total.agreed }}</b><span>agreements</span></div>
<div><b>{{ total.spurious }}</b><span>spurious</span></div>
<div><b>{{ total.missed }}</b><span>missed</span></div>
</section>
{% endfor %}

{% if page.questions %}
<section class="card big" aria-label="Scores of all documents: questions">
{% set all, answerable, unanswerable = page.questions %}
<h2>Questions</h2>
<div><b>{{ all.exact | percent }}</b><span>exact match</span></div>
<div><b>{{ all.f1 | percent }}</b><span>F1</span></div>
<div><b>{{ all.answered }}</b><span>answered of {{ all.questions }}</span></div>
<div><b>{{ unanswerable.right }}</b><span>&ldquo;no answer&rdquo; right of
{{ unanswerable.questions }}</span></div>
</section>
{% endif %}

<div class="two">
<div>
{% for tally in page.tallies %}
<section class="card">
<h2>Labels of {{ tally.what }}</h2>
<div class="long" tabindex="0" role="region" aria-label="Labels of {{ tally.what }}">
<table>
<tr><th scope="col">label</th>
{% for name in ("gold", "found", "right", "P", "R", "F") %}
<th scope="col">{{ name }}</th>
{% endfor %}
</tr>
{% for label, counts in tally.in_order() %}
<tr><td class="name">{% if tally.what == "entities" %}
<span class="swatch" style="--hue:{{ hues[label] }}"></span>{% endif %}{{ label }}</td>
<td>{{ counts.gold }}</td><td>{{ counts.predicted }}</td><td>{{ counts.agreed }}</td>
<td>{{ counts.p | percent }}</td><td>{{ counts.r | percent }}</td>
<td>{{ counts.f | percent }}</td></tr>
{% endfor %}
</table>
</div>
</section>
{% endfor %}
{% if page.questions %}
<section class="card">
<h2>Questions with and without an answer</h2>
<div class="long" tabindex="0" role="region" aria-label="Questions with and without an answer">
<table>
<tr><th scope="col">questions</th>
{% for name in ("gold", "answered", "right", "EM", "F1") %}
<th scope="col">{{ name }}</th>
{% endfor %}
</tr>
{% for row in page.questions %}
<tr><td class="name">{{ row.name }}</td><td>{{ row.questions }}</td><td>{{ row.answered }}</td>
<td>{{ row.right }}</td><td>{{ row.exact | percent }}</td><td>{{ row.f1 | percent }}</td></tr>
{% endfor %}
</table>
</div>
<p class="note">Right: the best answer, or that there is none, matches exactly (EM). F1: of its
words.</p>
</section>
{% endif %}
</div>
<div>
{% if page.bars %}
<section class="card">
<h2>Scores of predicted entities</h2>
<svg class="histogram" viewBox="-6 -8 332 140" role="img"
  aria-label="Histogram of scores; right ones, spurious ones on top">
{% for bar in page.bars %}
{% set n = bar.agreed + bar.spurious %}
{% if n %}
{# The bar's height is the root of its count, so that a few entities can be seen beside many. #}
{% set height = [(n / highest) ** 0.5 * 100, 2] | max %}
{% set bad = height * bar.spurious / n %}
<g><title>{{ "%.2f" % bar.low }} and up: {{ bar.agreed }} right, {{ bar.spurious }} spurious</title>
<rect x="{{ 1 + loop.index0 * 16 }}" y="{{ "%.1f" % (114 - height + bad) }}" width="14"
  height="{{ "%.1f" % (height - bad) }}" class="right"/>
<rect x="{{ 1 + loop.index0 * 16 }}" y="{{ "%.1f" % (114 - height) }}" width="14"
  height="{{ "%.1f" % bad }}" class="wrong"/>
<text x="{{ 8 + loop.index0 * 16 }}" y="{{ "%.1f" % (111 - height) }}"
  text-anchor="middle">{{ n }}</text></g>
{% endif %}
{% endfor %}
<line x1="0" y1="114.5" x2="320" y2="114.5" class="axis"/>
<text x="0" y="127">0</text><text x="160" y="127" text-anchor="middle">0.5</text>
<text x="320" y="127" text-anchor="end">1</text>
</svg>
<p class="note"><span class="right">&#9632;</span> right &nbsp;
<span class="wrong">&#9632;</span> spurious &nbsp; (heights: square root of the count)</p>
</section>
{% endif %}
{% for curve in page.curves %}
<section class="card">
<h2>How often scores are right: {{ curve.component }}</h2>
<svg class="histogram" viewBox="-26 -8 352 172" role="img"
  aria-label="Share of right answers of {{ curve.component }} by score, and the diagonal of exact
scores">
{% for y in (0, 50, 100) %}
<line x1="0" y1="{{ 140.5 - 1.3 * y }}" x2="320" y2="{{ 140.5 - 1.3 * y }}" class="axis"
  stroke-opacity="{{ 1 if y == 0 else 0.35 }}"/>
<text x="-4" y="{{ 144 - 1.3 * y }}" text-anchor="end">{{ y }}</text>
{% endfor %}
{% for bin in curve.bins %}
<g><title>Scores from {{ "%.1f" % bin.low }}: {{ bin.n }} answers, mean score
{{ bin.score | percent }}, {{ bin.right | percent }} % right</title>
<rect x="{{ "%.1f" % (bin.low * 320 + 2) }}" y="{{ "%.1f" % (140 - 130 * bin.right) }}" width="28"
  height="{{ "%.1f" % (130 * bin.right) }}" class="right"
  fill-opacity="{{ 0.9 if bin.n >= 20 else 0.4 }}"/>
<text x="{{ "%.1f" % (bin.low * 320 + 16) }}" y="{{ "%.1f" % (136 - 130 * bin.right) }}"
  text-anchor="middle">{{ bin.n }}</text></g>
{% endfor %}
<line x1="0" y1="140" x2="320" y2="10" class="exact" stroke-dasharray="4 3"/>
<text x="0" y="155">0</text><text x="160" y="155" text-anchor="middle">score 0.5</text>
<text x="320" y="155" text-anchor="end">1</text>
</svg>
<p class="note">Bars: % of the answers that are right, with their number (pale: fewer than 20). On
the dashed line scores are exact. Calibration error {{ curve.error | percent }} %, of which
{{ curve.by_chance | percent }} are to be expected by chance.</p>
</section>
{% endfor %}
<section class="card">
<h2>Pipeline</h2>
<dl>
{% for name, value in page.meta %}
<dt>{{ name }}</dt><dd>{{ value }}</dd>
{% endfor %}
</dl>
</section>
</div>
</div>

<section class="card" style="--hue:210;--gold:210">
<h2>Legend</h2>
{% if page.entities == "given" %}
<p class="legend">
<span><mark class="agreed">text</mark><span class="tag">LABEL</span> an annotated entity</span>
<span><mark class="missed">text</mark><span class="tag missed">LABEL</span> an annotated entity
that does not align with tokens, and was not given</span>
</p>
{% elif page.entities %}
<p class="legend">
<span><mark class="agreed">text</mark><span class="tag">LABEL <b>0.98</b></span> predicted and
annotated alike</span>
<span><mark class="spurious">text</mark><span class="tag spurious">LABEL <b>0.61</b></span>
spurious: only predicted</span>
<span><mark class="missed">text</mark><span class="tag missed">LABEL</span> only annotated</span>
</p>
<p class="note">The number is the score of the label. An entity agrees if both its ends
and its label agree. A predicted entity with another label or another end is spurious, and the
annotated one is missed.</p>
{% endif %}
{% if types %}
<p class="legend">
<span><span class="type agreed">type <b>0.93</b></span> type of the entity before it, annotated
alike</span>
<span><span class="type spurious">type <b>0.55</b></span> only predicted</span>
<span><span class="type missed">type</span> only annotated</span>
<span><span class="type plain">type <b>0.93</b></span> predicted, nothing annotated</span>
</p>
{% endif %}
{% if relations %}
<p class="legend">Arcs point from the head of a relation to its tail:
<span class="line agreed"><b>annotated alike</b></span>
<span class="line spurious"><b>&#10007; only predicted</b></span>
<span class="line missed"><b>missed (dashed): only annotated</b></span></p>
{% endif %}
{% if links %}
<p class="legend">Links of mentions:
<span class="link agreed">as annotated</span>
<span class="link spurious">&#10007; another entity, and the right one</span>
<span>candidates with their scores, <b>the right one</b> in bold</span></p>
{% endif %}
{% if questions %}
<p class="legend">Answers, with the numbers of their questions:
<span><span class="n plain">1</span><mark class="over-one">text</mark> predicted</span>
<span><span class="n agreed">1</span><mark class="over-one">text</mark> right</span>
<span><span class="n spurious">1</span><mark class="over-one">text</mark> wrong</span>
<span><span class="n missed">1</span><mark class="over-missed">text</mark> a right answer that
was not given</span>
<span><mark class="over-more">text</mark><span class="n close">1</span> several answers, of which
that to question 1 ends</span></p>
<p class="note">A number in the text leads to its question, an answer below the text to its place.
1.2 is the second answer to question 1; scores count only the first.</p>
{% endif %}
</section>

{% for doc in page.documents %}
<article class="card">
<header><h3>{{ doc.title }}</h3>
<div class="scores">{{ doc.n_words }} tokens
{% if doc.counts is none %}
{% if page.entities %}
<span>{{ "entities " if questions }}not annotated</span>
{% endif %}
{% elif page.entities == "predicted" %}
{{ scores(doc.counts) }}
{% endif %}
{% if doc.n_compared %}
<span>{{ doc.n_right }} of {{ doc.n_compared }} questions right</span>
{% endif %}
</div></header>
<p class="text" dir="auto">
{%- for piece in doc.pieces -%}
{%- for answer in piece.opens -%}
<a class="n {{ answer.kind }}" id="{{ answer.id }}" href="#{{ answer.question }}"
 title="{{ "right answer" if answer.kind == "missed" else "answer" }} to question {{ answer.label }}
{%- if answer.score is not none %}, {{ "%.2f" % answer.score }}{% endif %}">{{ answer.label }}</a>
{%- endfor -%}
{%- if piece.kind -%}
<mark class="{{ piece.kind }}{% if piece.line %} over-{{ piece.line }}{% endif %}" style="--hue:
{{- hues[piece.label or piece.gold_label] }}
{%- if piece.kind == "both" %};--gold:{{ hues[piece.gold_label] }}{% endif %}">
{{- piece.text }}</mark>
{%- elif piece.line -%}
<mark class="over-{{ piece.line }}">{{ piece.text }}</mark>
{%- else -%}
{{ piece.text }}
{%- endif -%}
{%- for answer in piece.closes -%}
<span class="n close">{{ answer.label }}</span>
{%- endfor -%}
{%- for tag in piece.tags -%}
<span class="tag {{ tag.kind }}" style="--hue:{{ hues[tag.label] }}" title="{{ words[tag.kind] }}">
{{- tag_text(tag) | trim }}</span>
{%- endfor -%}
{%- for type in piece.types -%}
<span class="type {{ type.kind }}">{{ type.name }}{% if type.score is not none %}
 <b>{{ "%.2f" % type.score }}</b>{% endif %}</span>
{%- endfor -%}
{%- endfor -%}
</p>
{% if doc.questions %}
<ol class="questions" aria-label="Questions">
{% for question in doc.questions %}
<li id="{{ question.id }}"><span class="n {{ question.kind }}">{{ question.number }}</span>
<div><span dir="auto">{{ question.text if question.text.strip() else "(empty)" }}</span>
<div class="found">
{% for answer in question.answers %}
<span class="{{ answer.kind }}">{{ place(answer) }} {{ "%.2f" % answer.score }}</span>
{% endfor %}
{% if question.n_others %}<span>+{{ question.n_others }}</span>{% endif %}
{% if question.no_answer is not none or not question.answers %}
<span class="none{{ " " + question.kind if not question.answers }}">no answer
{%- if question.no_answer is not none %} {{ "%.2f" % question.no_answer }}{% endif %}</span>
{% endif %}
{% if question.kind == "spurious" and question.f1 %}
<span>F1 {{ question.f1 | percent }}</span>
{% endif %}
{% if question.kind in ("spurious", "missed") %}
<span>right:
{% for answer in question.gold %}
{{ place(answer) }}{{ "," if not loop.last }}
{% else %}
<span class="none">no answer</span>
{% endfor %}
</span>
{% endif %}
</div></div></li>
{% endfor %}
</ol>
{% endif %}
{% if doc.relations.pictures or doc.relations.lines %}
<div class="relations" tabindex="0" aria-label="Relations">
{% for picture in doc.relations.pictures %}
{{ picture }}
{% endfor %}
{% for line in doc.relations.lines %}
<p class="line {{ line.kind }}">{{ line.head }} &rarr; <b>{{ line.label }}</b> &rarr;
{{ line.tail }}</p>
{% endfor %}
</div>
{% endif %}
{% if doc.links %}
<div class="links" tabindex="0" role="region" aria-label="Links">
<table>
<tr><th scope="col">mention</th><th scope="col">link</th><th scope="col">candidates</th></tr>
{% for link in doc.links %}
<tr><td dir="auto">{{ link.mention }}</td>
<td><span class="link {{ link.kind }}" dir="auto">
{%- if link.kind in ("spurious", "missed") %}&#10007; {% endif -%}
{{ link.name or "NIL" }}</span>
{% if link.gold %} right: {{ link.gold }}{% endif %}
{% if link.description %}
<span class="about" dir="auto">{{ link.description }}</span>
{% endif %}</td>
<td>
{% for candidate in link.candidates %}
<span class="candidate{{ " gold" if candidate.is_gold }}" dir="auto">{{ candidate.name }}
{{ "%.2f" % candidate.score }}</span>
{% endfor %}
{% if link.n_others %}+{{ link.n_others }}{% endif %}</td></tr>
{% endfor %}
</table>
</div>
{% endif %}
</article>
{% endfor %}
</main>
</body>
</html>
"""
