//! [`Page`]: the parts of the page `report.html`. Headings, paragraphs, tables and figures go through here, so that every text is
//! escaped and every wide table scrolls by itself instead of widening the page.
//!
//! The page has no script, no font and no picture of its own, and its policy forbids to load any, so it can be mailed and opened
//! anywhere. Colours follow the reader's choice of light or dark; paper is always light.

use std::fmt::Write as _;

use kohort_plots::escaped;

/// Text has a contrast of at least 7 to 1 on its background in both schemes, and lesser text of 4.5 to 1.
const STYLE: &str = "\
:root{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--less:#57606a;--line:#d0d7de;--soft:#f4f6f8;\
--good:#0a5c2b;--good-soft:#e3f4e8;--fair:#6b4700;--fair-soft:#fdf1d8;--bad:#8f1d14;--bad-soft:#fdeceb;--link:#0550ae}\
@media (prefers-color-scheme:dark){:root{--paper:#14171b;--ink:#e6e9ec;--less:#a2abb5;--line:#3a424b;--soft:#1e2329;\
--good:#8fe0ae;--good-soft:#14301f;--fair:#f0cd8a;--fair-soft:#332611;--bad:#ffb3ab;--bad-soft:#3a1a17;--link:#8cc0ff}}\
*{box-sizing:border-box}\
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}\
main,header,footer{max-width:68rem;margin:0 auto;padding:0 1.25rem}\
header{padding-top:2rem}\
h1{font-size:1.7rem;line-height:1.2;margin:0 0 .25rem}\
h2{font-size:1.25rem;margin:2.5rem 0 .75rem;padding-top:.75rem;border-top:2px solid var(--line)}\
h3{font-size:1.02rem;margin:1.5rem 0 .5rem}\
p,ul,ol,dl{margin:0 0 .8rem}li{margin:.2rem 0}p,li,dd{max-width:46rem;overflow-wrap:break-word}\
a{color:var(--link)}\
.less{color:var(--less)}\
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.2rem,1fr));gap:.75rem;margin:1.25rem 0;padding:0;list-style:none}\
.cards li{background:var(--soft);border:1px solid var(--line);border-radius:.5rem;padding:.7rem .85rem;margin:0}\
.cards b{display:block;font-size:1.45rem;line-height:1.2;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}\
.cards span{color:var(--less);font-size:.88rem;line-height:1.35;display:block}\
.box{border-left:.3rem solid var(--line);background:var(--soft);padding:.7rem 1rem;margin:0 0 1rem;border-radius:0 .4rem .4rem 0}\
.box p:last-child,.box ul:last-child{margin-bottom:0}\
.good{border-color:var(--good);background:var(--good-soft)}.fair{border-color:var(--fair);background:var(--fair-soft)}\
.bad{border-color:var(--bad);background:var(--bad-soft)}\
.tag{display:inline-block;font-size:.85rem;font-weight:600;padding:.05rem .5rem;border-radius:1rem;border:1px solid}\
.tag.good{color:var(--good)}.tag.fair{color:var(--fair)}.tag.bad{color:var(--bad)}\
.scroll{overflow-x:auto;margin:0 0 1rem}\
table{border-collapse:collapse;font-size:.92rem;line-height:1.4}\
caption{text-align:left;color:var(--less);padding-bottom:.35rem}\
th,td{text-align:left;vertical-align:top;padding:.35rem .9rem .35rem 0;border-bottom:1px solid var(--line)}\
thead th{border-bottom-width:2px;font-size:.85rem}\
tbody th{font-weight:500}\
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}\
td,tbody th{overflow-wrap:break-word;max-width:26rem}td:not(.n){min-width:7rem}\
code,pre{font:.86rem/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}\
code{overflow-wrap:anywhere}td code{display:inline-block;min-width:15rem}\
pre{background:var(--soft);border:1px solid var(--line);border-radius:.4rem;padding:.7rem .9rem;overflow-x:auto;margin:0 0 1rem}\
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,20.5rem),1fr));gap:1.25rem 2rem;margin:0 0 1rem}\
figure{margin:0;min-width:0}figcaption{color:var(--less);font-size:.88rem;margin-top:.25rem}\
dl.facts{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1.25rem}\
dl.facts dt{color:var(--less)}dl.facts dd{margin:0;overflow-wrap:anywhere}\
@media (max-width:34rem){dl.facts{grid-template-columns:1fr;gap:0}dl.facts dd{margin-bottom:.5rem}h1{font-size:1.4rem}}\
.sign{display:grid;grid-template-columns:repeat(auto-fit,minmax(13rem,1fr));gap:2rem 1.5rem;margin:1rem 0}\
.sign div{border-top:1px solid var(--ink);padding-top:.3rem;margin-top:2.4rem;font-size:.88rem;color:var(--less)}\
footer{padding-top:1.5rem;padding-bottom:3rem;color:var(--less);font-size:.88rem}\
@page{margin:18mm 16mm}\
@media print{:root{color-scheme:light;--paper:#fff;--ink:#000;--less:#444;--line:#bbb;--soft:#f6f6f6;--good:#0a5c2b;\
--good-soft:#f1f8f3;--fair:#6b4700;--fair-soft:#fdf8ec;--bad:#8f1d14;--bad-soft:#fdf3f2;--link:#000}\
body{font-size:10.5pt}main,header,footer{max-width:none;padding-left:0;padding-right:0}header{padding-top:0}\
h2,h3{break-after:avoid}figure,.box,.cards li,tr,.sign{break-inside:avoid}.scroll,pre{overflow:visible}pre{white-space:pre-wrap}\
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}";

/// A cell of a table.
pub(super) enum Cell {
    /// A text.
    Text(String),
    /// A number or a share, which stands at the right.
    Number(String),
    /// A word with a colour.
    Tag(Tone, String),
    /// A text in the type of code, for example a digest or a label.
    Code(String),
}

/// How good something is. Words say it too, because nobody should have to see a colour.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Good,
    Fair,
    Bad,
}

impl Tone {
    fn class(self) -> &'static str {
        match self {
            Tone::Good => "good",
            Tone::Fair => "fair",
            Tone::Bad => "bad",
        }
    }
}

/// A page in the making.
pub(super) struct Page {
    html: String,
}

impl Page {
    /// A page with this title.
    pub(super) fn new(title: &str) -> Self {
        let title = escaped(title);
        let html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n"
        );
        Page { html }
    }

    /// Ends the part above the first heading.
    pub(super) fn begin(&mut self) {
        self.html += "</header>\n<main>\n";
    }

    /// The whole page.
    pub(super) fn finish(mut self, footer: &str) -> String {
        writeln!(self.html, "</main>\n<footer><p>{}</p></footer>\n</body>\n</html>", escaped(footer))
            .expect(INFALLIBLE);
        self.html
    }

    pub(super) fn heading(&mut self, text: &str) {
        writeln!(self.html, "<h2>{}</h2>", escaped(text)).expect(INFALLIBLE);
    }

    pub(super) fn subheading(&mut self, text: &str) {
        writeln!(self.html, "<h3>{}</h3>", escaped(text)).expect(INFALLIBLE);
    }

    pub(super) fn paragraph(&mut self, text: &str) {
        writeln!(self.html, "<p>{}</p>", escaped(text)).expect(INFALLIBLE);
    }

    /// A paragraph in lesser type.
    pub(super) fn remark(&mut self, text: &str) {
        writeln!(self.html, "<p class=\"less\">{}</p>", escaped(text)).expect(INFALLIBLE);
    }

    pub(super) fn list<T: AsRef<str>>(&mut self, items: impl IntoIterator<Item = T>) {
        let mut items = items.into_iter().peekable();
        if items.peek().is_none() {
            return;
        }
        self.html += "<ul>";
        for item in items {
            write!(self.html, "<li>{}</li>", escaped(item.as_ref())).expect(INFALLIBLE);
        }
        self.html += "</ul>\n";
    }

    /// A box with a first line that stands out.
    pub(super) fn boxed(&mut self, tone: Tone, first: &str, items: &[String]) {
        write!(self.html, "<div class=\"box {}\"><p><strong>{}</strong></p>", tone.class(), escaped(first))
            .expect(INFALLIBLE);
        match items {
            [] => {}
            [only] => self.paragraph(only),
            items => self.list(items),
        }
        self.html += "</div>\n";
    }

    /// Figures with a name each.
    pub(super) fn cards(&mut self, cards: &[(String, String)]) {
        self.html += "<ul class=\"cards\">";
        for (figure, name) in cards {
            write!(self.html, "<li><b>{}</b><span>{}</span></li>", escaped(figure), escaped(name)).expect(INFALLIBLE);
        }
        self.html += "</ul>\n";
    }

    /// Names and what is said of each.
    pub(super) fn facts(&mut self, facts: &[(&str, String)]) {
        self.html += "<dl class=\"facts\">";
        for (name, value) in facts {
            write!(self.html, "<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(value)).expect(INFALLIBLE);
        }
        self.html += "</dl>\n";
    }

    /// A table whose first column names the rows. It scrolls by itself if it is wider than the page.
    pub(super) fn table(&mut self, caption: &str, header: &[&str], rows: &[Vec<Cell>]) {
        let caption = escaped(caption);
        write!(
            self.html,
            "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{caption}\"><table>\
             <caption>{caption}</caption><thead><tr>"
        )
        .expect(INFALLIBLE);
        let is_number =
            |column: usize| rows.first().is_some_and(|row| matches!(row.get(column), Some(Cell::Number(_))));
        for (column, name) in header.iter().enumerate() {
            let class = if is_number(column) { " class=\"n\"" } else { "" };
            write!(self.html, "<th scope=\"col\"{class}>{}</th>", escaped(name)).expect(INFALLIBLE);
        }
        self.html += "</tr></thead><tbody>\n";
        for row in rows {
            self.html += "<tr>";
            for (column, cell) in row.iter().enumerate() {
                let (open, close) = if column == 0 { ("th scope=\"row\"", "th") } else { ("td", "td") };
                match cell {
                    Cell::Text(text) => write!(self.html, "<{open}>{}</{close}>", escaped(text)),
                    Cell::Number(text) => write!(self.html, "<{open} class=\"n\">{}</{close}>", escaped(text)),
                    Cell::Code(text) => write!(self.html, "<{open}><code>{}</code></{close}>", escaped(text)),
                    Cell::Tag(tone, text) => write!(
                        self.html,
                        "<{open}><span class=\"tag {}\">{}</span></{close}>",
                        tone.class(),
                        escaped(text)
                    ),
                }
                .expect(INFALLIBLE);
            }
            self.html += "</tr>\n";
        }
        self.html += "</tbody></table></div>\n";
    }

    /// Charts beside each other, each with a caption or none.
    pub(super) fn charts(&mut self, charts: &[(String, String)]) {
        if charts.is_empty() {
            return;
        }
        self.html += "<div class=\"charts\">\n";
        for (svg, caption) in charts {
            write!(self.html, "<figure>{svg}").expect(INFALLIBLE);
            if !caption.is_empty() {
                write!(self.html, "<figcaption>{}</figcaption>", escaped(caption)).expect(INFALLIBLE);
            }
            self.html += "</figure>\n";
        }
        self.html += "</div>\n";
    }

    /// Text that is shown as it is.
    pub(super) fn code(&mut self, name: &str, text: &str) {
        let name = escaped(name);
        writeln!(self.html, "<pre role=\"region\" tabindex=\"0\" aria-label=\"{name}\">{}</pre>", escaped(text))
            .expect(INFALLIBLE);
    }

    /// Lines to be signed on.
    pub(super) fn signatures(&mut self, lines: &[&str]) {
        self.html += "<div class=\"sign\">";
        for line in lines {
            write!(self.html, "<div>{}</div>", escaped(line)).expect(INFALLIBLE);
        }
        self.html += "</div>\n";
    }
}

const INFALLIBLE: &str = "writing to a string can't fail";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_release_can_become_markup() {
        let evil = "<script>alert(\"1\")</script>&\u{0}";
        let mut page = Page::new(evil);
        page.begin();
        page.heading(evil);
        page.subheading(evil);
        page.paragraph(evil);
        page.remark(evil);
        page.list([evil]);
        page.boxed(Tone::Bad, evil, &[evil.to_owned(), evil.to_owned()]);
        page.cards(&[(evil.to_owned(), evil.to_owned())]);
        page.facts(&[("name", evil.to_owned())]);
        let cells = || vec![Cell::Text(evil.into()), Cell::Code(evil.into()), Cell::Tag(Tone::Fair, evil.into())];
        page.table(evil, &[evil, evil, evil], &[cells()]);
        page.charts(&[(String::new(), evil.to_owned())]);
        page.code(evil, evil);
        page.signatures(&[evil]);
        let html = page.finish(evil);
        assert!(!html.contains("<script") && !html.contains('\u{0}'), "{html}");
        assert_eq!(html.matches("&lt;script&gt;").count(), html.matches("&lt;/script&gt;").count());
        assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"));
    }
}
