/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the shop's pages share. They are written in Korean, with the English beside it for browsers that would rather read that.
 */
'use strict';

const $ = (id) => document.getElementById(id);
const lang = (navigator.languages || [navigator.language]).map((tag) => tag.slice(0, 2)).find((tag) => tag === 'ko' || tag === 'en') || 'en';
const won = (amount) => (lang === 'ko' ? `${amount.toLocaleString('ko')}원` : `₩${amount.toLocaleString('en')}`);
const seatName = (id) => id.replace(/(.)-(.*)/, lang === 'ko' ? '$1구역 $2번' : 'Block $1, seat $2');
const reservationUrl = (key) => `/api/v1/reservations/${encodeURIComponent(key)}`;
const CALL_TIMEOUT_MS = 15000;

if (lang === 'en') {
  document.documentElement.lang = lang;
  for (const element of document.querySelectorAll('[data-en]')) element.textContent = element.dataset.en;
}

/* {status, answer}; status 0 where no answer came. The pass is a cookie that no script can see: it goes along by itself. */
async function call(method, path, body, headers) {
  const aborter = new AbortController();
  const timer = setTimeout(() => aborter.abort(), CALL_TIMEOUT_MS);
  try {
    const response = await fetch(path, {
      method,
      headers: body ? { 'Content-Type': 'application/json', ...headers } : headers,
      body: body && JSON.stringify(body),
      cache: 'no-store',
      credentials: 'same-origin',
      signal: aborter.signal,
    });
    return { status: response.status, answer: await response.json() };
  } catch {
    return { status: 0, answer: {} };
  } finally {
    clearTimeout(timer);
  }
}

/* The visit is over, says the gate, and where the line is. From there they come back to this page. Whether it was the gate. */
function goToLine({ status, answer }) {
  const isTurnedAway = status === 403 && /^\/[^/\\]/.test(answer.redirectTo);
  if (isTurnedAway) location.replace(`${answer.redirectTo}?return=${encodeURIComponent(location.pathname)}`);
  return isTurnedAway;
}
