// What all scripts of the page share. The page is one file: the scripts are joined, in this order, into one element.
"use strict";
const explorers = {};
const SVG = "http://www.w3.org/2000/svg";
const COLOURS = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#000000", "#8C8C8C"];

/* An element with attributes (functions are listeners) and children (texts are texts, never HTML). */
function el(tag, attributes, ...children) {
  const [name, space] = tag.split(":").reverse();
  const node = space === "svg" ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") node.addEventListener(key, value);
    else if (value !== undefined && value !== null && value !== false) node.setAttribute(key, value);
  }
  node.append(...children.flat().filter(child => child !== null && child !== undefined));
  return node;
}

const button = (text, click, attributes) => el("button", { type: "button", click, ...attributes }, text);
const share = p => (p >= 0.9995 ? "1" : p < 0.0005 && p > 0 ? "<0.001" : p.toFixed(3).replace(/^0\./, "."));
const signed = x => (x > 0 ? "+" : x < 0 ? "\u2212" : "") + (Math.abs(x) === Infinity ? "\u221e" : Math.abs(x).toFixed(2));
const plural = (n, one, many) => `${n} ${n === 1 ? one : many || one + "s"}`;
