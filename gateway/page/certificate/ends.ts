import type { PageCertificate } from "../../../model/contract/operator/page-certificate.ts";

const dayMs = 24 * 3_600_000;
/** As long as it may take to have one signed by somebody else. */
const warnedDays = 14;

/** What should be known of the page's certificate of one's own before browsers say it: sentences, none where all is well. */
export function certificateWarnings({ certificate, fault }: PageCertificate, nowMs: number): readonly string[] {
  if (certificate === null) return fault === undefined ? [] : [`the page's certificate is not in force: ${fault}`];
  const { names, until } = certificate;
  const [name = "the page"] = names;
  const leftMs = Date.parse(until) - nowMs;
  if (leftMs > warnedDays * dayMs) return [];
  const days = Math.ceil(leftMs / dayMs);
  const when = `${days === 1 ? "within a day" : `in ${days} days`}, on ${until.slice(0, 10)}`;
  const ends = leftMs <= 0 ? `has ended on ${until.slice(0, 10)}, and browsers refuse the page` : `ends ${when}`;
  return [
    `the page's certificate for ${name} ${ends}: have it renewed over its key, then \`cells gateway certificate FILE\`, or begin again by \`cells gateway request ${names.join(" ")}\``,
  ];
}
