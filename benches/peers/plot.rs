//! The table as a picture: a bar for each median, on a logarithmic axis.

use super::{Row, SIGNALS, ms, percentile, text};
use plotters::prelude::*;
use std::path::Path;

const WIDTH: u32 = 760;
const ROW_HEIGHT: u32 = 44;
const MARGIN: u32 = 80;
const TEXT: RGBColor = RGBColor(128, 128, 128);
const GRID: RGBAColor = RGBAColor(128, 128, 128, 0.3);
const BARS: [RGBColor; 3] = [RGBColor(47, 129, 247), RGBColor(63, 185, 80), RGBColor(219, 109, 40)];
/// Where the axis begins, in milliseconds.
const LEAST_MS: f64 = 0.5;

/// Writes it.
pub fn write(path: &Path, rows: &[Row]) -> Result<(), String> {
    let height = ROW_HEIGHT * u32::try_from(rows.len()).map_err(text)? + MARGIN;
    let medians: Vec<Vec<f64>> =
        rows.iter().map(|row| row.times.iter().map(|times| ms(percentile(times, 50))).collect()).collect();
    let most = medians.iter().flatten().copied().fold(10.0, f64::max) * 1.5;
    let area = SVGBackend::new(path, (WIDTH, height)).into_drawing_area();
    let style = |size| ("sans-serif", size).into_font().color(&TEXT);
    let mut chart = ChartBuilder::on(&area)
        .caption("ms until both others name the next leader, median", style(16))
        .margin(8)
        .x_label_area_size(28)
        .y_label_area_size(210)
        .build_cartesian_2d((LEAST_MS..most).log_scale(), 0.0..rows.len() as f64)
        .map_err(text)?;
    let names = |y: &f64| {
        let at = (rows.len() as f64 - y) as usize;
        rows.get(at).filter(|_| y.fract() > 0.0).map_or_else(String::new, |row| row.system.clone())
    };
    chart
        .configure_mesh()
        .label_style(style(12))
        .axis_style(TEXT)
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .y_labels(2 * rows.len() + 1)
        .y_label_formatter(&names)
        .draw()
        .map_err(text)?;
    for (at, ((_, signal), colour)) in SIGNALS.iter().zip(BARS).enumerate() {
        let bars = medians.iter().enumerate().filter_map(|(row, medians)| {
            let top = rows.len() as f64 - row as f64 - 0.15 - 0.25 * at as f64;
            Some(Rectangle::new([(LEAST_MS, top), (*medians.get(at)?, top - 0.2)], colour.filled()))
        });
        let drawn = chart.draw_series(bars).map_err(text)?;
        drawn
            .label(*signal)
            .legend(move |(x, y)| Rectangle::new([(x, y - 4), (x + 12, y + 4)], colour.filled()));
    }
    let legend = SeriesLabelPosition::UpperRight;
    chart.configure_series_labels().position(legend).label_font(style(12)).draw().map_err(text)?;
    area.present().map_err(text)
}
