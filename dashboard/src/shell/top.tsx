/** The bar over a page: where it is, what it is called, what can be done. */

import { Link } from "@tanstack/react-router";
import { Fragment, type ReactNode, useEffect } from "react";

import { Icon } from "../parts/marks";

export interface Crumb {
  label: string;
  to: string;
}

export function Top(props: {
  title: string;
  crumbs?: Crumb[];
  after?: ReactNode;
  children?: ReactNode;
}): ReactNode {
  const { title, crumbs = [], after, children } = props;
  useEffect(() => {
    document.title = `${title} · Holdfast`;
  }, [title]);
  const up = crumbs.at(-1);
  return (
    <header className="top">
      {crumbs.length ? (
        <span className="crumb hide-s">
          {crumbs.map((crumb) => (
            <Fragment key={crumb.to}>
              <Link to={crumb.to}>{crumb.label}</Link>
              <Icon name="right" />
            </Fragment>
          ))}
        </span>
      ) : null}
      {up ? (
        <Link className="only-s" to={up.to} aria-label={up.label}>
          <Icon name="left" />
        </Link>
      ) : null}
      <h1 className="cut" title={title}>
        {title}
      </h1>
      {after}
      <span className="grow" />
      {children}
    </header>
  );
}
